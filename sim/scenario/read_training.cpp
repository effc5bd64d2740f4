#include "sim/scenario/read_training.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <compare>
#include <optional>
#include <string_view>

#include "sim/base/registry.h"
#include "sim/collectives/collective.h"
#include "sim/collectives/nccl_tuner.h"
#include "sim/scenario/fields.h"
#include "sim/scenario/spelling.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

constexpr RatioRange bucket_range_mb{0.001, 1e6};

struct Version {
  int major = 0;
  int minor = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};

// DistributedDataParallel's bucket_cap_mb defaults to None from here on: a cap that is set caps every bucket
// (pytorch/pytorch pull request 121640).
constexpr Version first_with_optional_cap{2, 4};

// What a framework does with keys that are left out.
struct Framework {
  std::string_view name;
  std::string_view default_version;
  double bucket_cap_mb;
  double first_bucket_mb;
};

constexpr std::array frameworks{Framework{"pytorch_ddp", "2.8", 25, 1}};

const Framework& find_framework(std::string_view name) {
  for (const Framework& framework : frameworks) {
    if (framework.name == name) {
      return framework;
    }
  }
  return frameworks.front();
}

// "2.8", "1.13.1", "2.1.0a0".
std::optional<Version> parse_version(std::string_view text) {
  Version version;
  const char* end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, version.major);
  if (error != std::errc{} || dot == end || *dot != '.') {
    return std::nullopt;
  }
  const bool has_minor = std::from_chars(dot + 1, end, version.minor).ec == std::errc{};
  return has_minor && version.major >= 0 && version.minor >= 0 ? std::optional(version) : std::nullopt;
}

Version read_version(const JsonReader& json, TrainingSpec& training) {
  if (const auto text = json.optional("framework_version")) {
    training.framework_version = text->text();
    if (text->is_string() && !parse_version(training.framework_version)) {
      text->expected("a version such as \"2.8\" or \"1.13.1\"");
    }
  }
  return parse_version(training.framework_version).value_or(Version{});
}

double read_bucket_mb(const JsonReader& json) {
  return json.number(bucket_range_mb.minimum, bucket_range_mb.maximum, "MiB");
}

void read_first_bucket(const JsonReader& json, const Place& place, bool sets_cap, const Framework& framework,
                       Version version, TrainingSpec& training) {
  if (const auto first = json.optional("first_bucket_mb")) {
    training.first_bucket_mb = read_bucket_mb(*first);
    return;
  }
  const bool follows_cap = sets_cap && version >= first_with_optional_cap;
  training.first_bucket_mb = follows_cap ? training.bucket_cap_mb : framework.first_bucket_mb;
  (place / "first_bucket_mb")
      .note(follows_cap ? "default (PyTorch 2.4 and later: the cap, because the cap is set)"
            : version >= first_with_optional_cap
                ? "default (PyTorch 2.4 and later: 1 MiB, because the cap is not set)"
                : "default (PyTorch before 2.4: 1 MiB whatever the cap)");
}

void read_buckets(const JsonReader& json, const Place& place, TrainingSpec& training) {
  const Framework& framework = find_framework(training.framework);
  training.framework_version = framework.default_version;
  const Version version = read_version(json, training);
  const auto cap = json.optional("bucket_cap_mb");
  training.bucket_cap_mb = cap ? read_bucket_mb(*cap) : framework.bucket_cap_mb;
  read_first_bucket(json, place, cap.has_value(), framework, version, training);
  training.gradient_as_bucket_view =
      boolean_or(json, "gradient_as_bucket_view", training.gradient_as_bucket_view);
  training.static_graph = boolean_or(json, "static_graph", training.static_graph);
  training.find_unused_parameters =
      boolean_or(json, "find_unused_parameters", training.find_unused_parameters);
  training.broadcast_buffers = boolean_or(json, "broadcast_buffers", training.broadcast_buffers);
}

void read_degrees(const JsonReader& json, std::int64_t ranks) {
  for (const std::string_view key : {"tensor_parallel", "pipeline_parallel", "context_parallel"}) {
    const auto degree = json.optional(key);
    if (degree && degree->integer(1, million) != 1) {
      degree->problem(fmt::format("found {}: not supported yet; valid: 1", degree->value().dump()));
    }
  }
  const auto degree = json.optional("data_parallel");
  if (degree && ranks > 0 && degree->integer(1, million) != ranks) {
    degree->problem(fmt::format("found {}, but the cluster has {} ranks and every other degree is 1",
                                degree->value().dump(), ranks));
  }
}

void check_global_batch(const JsonReader& json, const BatchFacts& facts, std::int64_t accumulation) {
  const auto global = json.optional("global_batch");
  if (!global) {
    return;
  }
  const std::int64_t found = global->integer(1, INT64_MAX);
  const std::int64_t derived = facts.batch_per_gpu * accumulation * facts.ranks;
  if (facts.ranks > 0 && found != derived) {
    global->problem(fmt::format("found {}, but batch_per_gpu {} x gradient_accumulation {} x {} ranks = {}",
                                found, facts.batch_per_gpu, accumulation, facts.ranks, derived));
  }
}

void check_strategy(const JsonReader& json, const TrainingSpec& training, std::int64_t ranks) {
  if (training.strategy == "single" && ranks > 1) {
    json.required("strategy")
        .problem(
            fmt::format("found \"single\", which trains on one GPU, with {} ranks; valid here: ddp", ranks));
  }
}

std::optional<Anchor> read_anchor(const std::optional<JsonReader>& json) {
  if (!json) {
    return std::nullopt;
  }
  Anchor anchor;
  const JsonReader set = json->required("set");
  for (const auto& [path, value] :
       set.is_missing() ? std::vector<std::pair<std::string, JsonReader>>{} : set.members()) {
    if (path == "compute" || path.starts_with("compute.anchor")) {
      value.problem("an anchor cannot change the anchor");
    }
    anchor.set.emplace_back(path, value.value().dump());
  }
  anchor.iteration_time = json->required("iteration_time").duration();
  json->finish();
  return anchor;
}

}  // namespace

std::vector<std::string> valid_strategies() {
  return Registry<Strategy>::names();
}

std::vector<std::string> valid_algorithms() {
  std::vector<std::string> names = Registry<Collective>::names();
  names.insert(names.begin(), "auto");
  return names;
}

std::int64_t read_library_version(const JsonReader& json) {
  const auto version = parse_nccl_version(json.text());
  if (!version) {
    json.expected("a release such as \"2.28\" or \"2.18.3\"");
  }
  return version.value_or(0);
}

std::vector<std::string> valid_protocols() {
  return {"auto", "ll", "ll128", "simple"};
}

std::vector<std::string> valid_frameworks() {
  std::vector<std::string> names;
  for (const Framework& framework : frameworks) {
    names.emplace_back(framework.name);
  }
  return names;
}

TrainingSpec read_training(const JsonReader& json, const Place& place, const BatchFacts& facts) {
  TrainingSpec training;
  training.strategy = name_or(json, "strategy", training.strategy, valid_strategies());
  training.framework = name_or(json, "framework", training.framework, valid_frameworks());
  read_buckets(json, place, training);
  training.gradient_accumulation = integer_or(json, "gradient_accumulation", 1, {1, million});
  training.optimizer = spelled_or(json, "optimizer", training.optimizer, optimizer_spellings);
  training.compression = spelled_or(json, "compression", training.compression, compression_spellings);
  read_degrees(json, facts.ranks);
  check_global_batch(json, facts, training.gradient_accumulation);
  check_strategy(json, training, facts.ranks);
  refuse_unsupported(json, {"pipeline_schedule", "virtual_stages", "recompute", "local_steps",
                            "staleness_bound", "servers"});
  json.finish();
  return training;
}

CommunicationSpec read_communication(const JsonReader& json, const Place& place, LibraryKind of_machine) {
  CommunicationSpec communication;
  communication.library = spelled_or(json, "library", of_machine, library_spellings);
  if (!json.optional("library")) {
    (place / "library").note("default (the machine's)");
  }
  if (const auto version = json.optional("library_version")) {
    communication.library_version = read_library_version(*version);
  }
  communication.algorithm = name_or(json, "algorithm", "auto", valid_algorithms());
  communication.protocol = name_or(json, "protocol", "auto", valid_protocols());
  communication.overlap = boolean_or(json, "overlap", true);
  const bool is_gloo = communication.library == LibraryKind::gloo;
  communication.collectives_in_flight = integer_or(json, "collectives_in_flight", is_gloo ? 2 : 1, {1, 64});
  if (!json.optional("collectives_in_flight")) {
    (place / "collectives_in_flight")
        .note(is_gloo ? "default (Gloo works on 2 collectives at a time)" : "default (one stream)");
  }
  if (const auto channels = json.optional("channels")) {
    communication.channels = channels->integer(1, 64);
  }
  refuse_unsupported(json, {"timeout"});
  json.finish();
  return communication;
}

ComputeSpec read_compute(const JsonReader& json) {
  ComputeSpec compute;
  if (const auto time = json.optional("single_gpu_iteration")) {
    compute.single_gpu_iteration = time->duration();
    if (compute.single_gpu_iteration == Duration::zero() && is_readable(*time, parse_duration)) {
      time->expected("a time above zero");
    }
  }
  compute.scale_ppm = parts_per_million_or(json, "scale", compute.scale_ppm, {0.000001, 1000});
  if (const auto slowdown = json.optional("slowdown_during_communication")) {
    compute.slowdown_during_communication_ppm = parts_per_million(*slowdown, {1, 100}, "a ratio");
  }
  compute.anchor = read_anchor(json.optional("anchor"));
  if (compute.anchor && json.optional("scale")) {
    json.required("anchor").problem(
        "found with compute.scale; expected one of the two, since the anchor solves scale");
  }
  json.finish();
  return compute;
}

SimulationSpec read_simulation(const JsonReader& json) {
  SimulationSpec simulation;
  simulation.fidelity = spelled_or(json, "fidelity", simulation.fidelity, fidelity_spellings);
  simulation.iterations = integer_or(json, "iterations", simulation.iterations, {1, 100'000});
  simulation.seed = integer_or(json, "seed", simulation.seed, {0, INT64_MAX});
  json.finish();
  return simulation;
}

}  // namespace lockstep
