#include "sim/scenario/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/scenario/fields.h"
#include "sim/scenario/limits.h"
#include "sim/scenario/load_context.h"
#include "sim/scenario/read_calibration.h"
#include "sim/scenario/read_comparison.h"
#include "sim/scenario/read_disturbance.h"
#include "sim/scenario/read_faults.h"
#include "sim/scenario/read_hardware.h"
#include "sim/scenario/read_input.h"
#include "sim/scenario/read_model.h"
#include "sim/scenario/read_training.h"
#include "sim/scenario/resolved.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t most_nodes = 1'000'000;
constexpr std::int64_t most_ranks = 1'000'000;

void apply_overrides(JsonDocument& document, const Overrides& overrides) {
  std::vector<std::string> problems;
  for (const auto& [path, value] : overrides) {
    try {
      document.set(path, value);
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems.begin(), error.problems.end());
    }
  }
  if (!problems.empty()) {
    throw ConfigError(problems);
  }
}

// Sections that may be left out are there and empty from here on.
void add_empty_sections(JsonDocument& document) {
  for (const char* section : {"training", "communication", "compute", "simulation"}) {
    const ordered_json& value = document.value();
    if (value.is_object() && (!value.contains(section) || value[section].is_null())) {
      document.set(section, "{}");
    }
  }
}

void read_node_counts(const JsonReader& json, const Place& place, ClusterSpec& cluster) {
  cluster.nodes = integer_or(json, "nodes", 1, {1, most_nodes});
  const auto gpus = json.optional("gpus_per_node");
  cluster.gpus_per_node = gpus ? gpus->integer(1, most_gpus_per_machine) : cluster.machine.gpus;
  if (!gpus) {
    (place / "gpus_per_node").note("default (all of the machine's)");
  }
  if (cluster.machine.name.empty()) {
    return;  // nothing is known about the machine: one mistake is one line
  }
  if (gpus && cluster.gpus_per_node > cluster.machine.gpus) {
    gpus->problem(fmt::format("found {}, but machine {} has {} GPUs", cluster.gpus_per_node,
                              cluster.machine.name, cluster.machine.gpus));
  }
  if (cluster.nodes > 1 && cluster.machine.nics.empty()) {
    json.required("nodes").problem(
        fmt::format("found {}, but machine {} has no NICs and cannot span nodes; valid: 1", cluster.nodes,
                    cluster.machine.name));
  }
  if (cluster.ranks() > most_ranks) {
    json.required("nodes").problem(fmt::format("found {} nodes of {} GPUs = {} ranks, expected at most {}",
                                               cluster.nodes, cluster.gpus_per_node, cluster.ranks(),
                                               most_ranks));
  }
}

void read_fabric_of(const JsonReader& json, const Place& place, std::optional<FabricSpec> of_machine,
                    ClusterSpec& cluster) {
  const Place fabric_place = place / "fabric";
  if (const auto fabric = json.optional("fabric")) {
    std::erase_if(place.context.origins,
                  [&](const auto& entry) { return entry.first.starts_with(fabric_place.pointer); });
    cluster.fabric = read_named(*fabric, fabric_place, ProfileKind::fabric, read_fabric);
  } else if (of_machine) {
    cluster.fabric = *std::move(of_machine);
  } else {
    fabric_place.note("default (one switch that adds nothing)");
  }
}

ClusterSpec read_cluster(const JsonReader& json, const Place& place,
                         std::optional<Calibration>& calibration) {
  ClusterSpec cluster;
  const JsonReader machine = json.required("machine");
  if (!machine.is_missing()) {
    MachineReading reading = read_named(machine, place / "machine", ProfileKind::machine, read_machine);
    cluster.machine = std::move(reading.machine);
    cluster.gpu = std::move(reading.gpu);
    calibration = std::move(reading.calibration);
    read_fabric_of(json, place, std::move(reading.fabric), cluster);
  } else {
    read_fabric_of(json, place, std::nullopt, cluster);
  }
  read_node_counts(json, place, cluster);
  read_disturbances(json, cluster);
  if (const auto faults = json.optional("faults")) {
    cluster.faults = read_faults(*faults, place / "faults", cluster.nodes);
  }
  json.finish();
  return cluster;
}

// communication.overlap decides how some frameworks group gradients, before that section is read.
std::optional<bool> stated_overlap(const JsonReader& json) {
  const JsonReader communication = json.required("communication");
  const auto overlap = communication.is_object() ? communication.optional("overlap") : std::nullopt;
  return overlap && overlap->is_bool() ? std::optional(overlap->boolean()) : std::nullopt;
}

bool has_block(const ModelUse& use, std::optional<LayerKind> kind) {
  return std::any_of(use.model.layers.begin(), use.model.layers.end(),
                     [&](const Layer& layer) { return layer.block >= 0 && (!kind || layer.kind == *kind); });
}

bool has_matrix(const ModelUse& use) {
  return std::any_of(use.model.parameters.begin(), use.model.parameters.end(),
                     [](const ParameterTensor& tensor) { return tensor.shape.size() > 1; });
}

TrainingFacts training_facts(const JsonReader& json, const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  const bool is_known = !cluster.machine.name.empty() && cluster.ranks() <= most_ranks;
  const ModelUse& use = scenario.model;
  const bool is_model_known = !use.model.layers.empty() || use.measured;
  return {.nodes = cluster.nodes,
          .gpus_per_node = cluster.gpus_per_node,
          .batch_per_gpu = use.batch_per_gpu,
          .precision = use.precision,
          .sockets = cluster.machine.host.sockets,
          .has_nics = !cluster.machine.nics.empty(),
          .has_blocks = !is_model_known || has_block(use, std::nullopt),
          .has_attention = !is_model_known || has_block(use, LayerKind::attention),
          .has_matrices = !is_model_known || has_matrix(use),
          .is_cluster_known = is_known,
          .overlap = stated_overlap(json)};
}

void note_derived(const Place& root) {
  for (const char* key : {"data_parallel", "global_batch"}) {
    (root / "training" / key).note("derived from cluster, batch_per_gpu and gradient_accumulation");
  }
}

// A note is about what was left out: what the user wrote is "given".
void drop_notes_about_given(const ordered_json& given, LoadContext& context) {
  std::erase_if(context.origins, [&](const auto& entry) {
    const ordered_json::json_pointer pointer(entry.first);
    const bool is_stated = given.contains(pointer) && !given[pointer].is_null();
    return is_stated && given[pointer].is_primitive() && !entry.second.starts_with("profile");
  });
}

void read_sections(const JsonReader& json, const Place& root, Scenario& scenario) {
  scenario.name = text_or(json, "name", "scenario");
  text_or(json, "description", "");
  text_or(json, "source", "");
  std::optional<Calibration> calibration;
  if (const JsonReader cluster = json.required("cluster"); !cluster.is_missing()) {
    scenario.cluster = read_cluster(cluster, root / "cluster", calibration);
  }
  if (const JsonReader model = json.required("model"); !model.is_missing()) {
    scenario.model = read_model(model, root / "model");
  }
  if (const auto input = json.optional("input")) {
    scenario.input = read_input(
        *input, root / "input",
        {.machine = scenario.cluster.machine, .sequence_length = scenario.model.model.tokens_per_sample});
  }
  note_derived(root);
  scenario.training =
      read_training(json.required("training"), root / "training", training_facts(json, scenario));
  const MachineSpec& machine = scenario.cluster.machine;
  scenario.communication =
      read_communication(json.required("communication"), root / "communication", machine.library);
  scenario.compute = read_compute(json.required("compute"));
  scenario.simulation = read_simulation(json.required("simulation"));
  if (const auto compare = json.optional("compare")) {
    scenario.comparison = read_comparison(*compare, root / "compare");
  }
  json.finish();
  const LibraryKind library = scenario.communication.library;
  scenario.cluster.calibration =
      calibration && machine.library == library
          ? *std::move(calibration)
          : find_calibration(machine, library, root / "cluster" / "machine" / "calibration");
  if (scenario.communication.library_version == 0) {
    scenario.communication.library_version = scenario.cluster.calibration.library_version;
  }
}

void throw_if_any(std::vector<std::string> problems, const std::vector<std::string>& others) {
  problems.insert(problems.end(), others.begin(), others.end());
  if (!problems.empty()) {
    throw ConfigError(problems);
  }
}

void check_limits(const Scenario& scenario, const std::string& file_name) {
  std::vector<std::string> problems = find_limit_problems(scenario);
  for (std::string& problem : problems) {
    problem = fmt::format("{}: {}", file_name, problem);
  }
  throw_if_any(std::move(problems), {});
}

// The anchor's own scenario must load as well, or solving it would fail later.
void load_anchor(Scenario& scenario, const LoadOptions& options) {
  if (!scenario.compute.anchor) {
    return;
  }
  LoadOptions anchored{.store = options.store,
                       .file_name = options.file_name,
                       .folder = options.folder,
                       .accepts_any_size = options.accepts_any_size};
  anchored.overrides = scenario.compute.anchor->set;
  anchored.overrides.emplace_back("compute.anchor", "null");
  try {
    scenario.compute.anchor->there = {load_value(scenario.given, anchored)};
  } catch (const ConfigError& error) {
    std::vector<std::string> problems;
    for (const std::string& problem : error.problems) {
      problems.push_back("with the changes of /compute/anchor/set: " + problem);
    }
    throw ConfigError(problems);
  }
}

}  // namespace

Scenario load_value(const ordered_json& value, const LoadOptions& options) {
  JsonDocument document = JsonDocument::from_value(value, options.file_name);
  apply_overrides(document, options.overrides);
  Scenario scenario;
  scenario.given = document.value();
  add_empty_sections(document);
  LoadContext context{.store = options.store, .folder = options.folder};
  if (const JsonReader json = document.root(); json.is_object()) {
    read_sections(json, {context, ""}, scenario);
  } else {
    json.expected("a scenario: an object with cluster and model");
  }
  throw_if_any(document.problems(), context.problems);
  scenario.simulation.fold = options.fold;
  scenario.simulation.accepts_any_size = options.accepts_any_size;
  scenario.simulation.fidelity = options.fidelity.value_or(scenario.simulation.fidelity);
  scenario.file_name = options.file_name;
  check_limits(scenario, options.file_name);
  load_anchor(scenario, options);
  load_compared(scenario, options);
  scenario.warnings = std::move(context.warnings);
  scenario.resolved = resolved_scenario(scenario);
  drop_notes_about_given(scenario.given, context);
  scenario.provenance = provenance_of(scenario, context.origins);
  return scenario;
}

Scenario load(const LoadRequest& request) {
  const ProfileStore store(request.data_directory);
  const std::string name = request.text ? "scenario" : request.path;
  const JsonDocument document =
      request.text ? JsonDocument::from_text(*request.text, name) : JsonDocument::from_file(name);
  Scenario scenario =
      load_value(document.value(),
                 {.store = store,
                  .file_name = name,
                  .folder = request.text ? "" : std::filesystem::path(name).parent_path().string(),
                  .overrides = request.overrides,
                  .fold = request.fold,
                  .fidelity = request.fidelity,
                  .accepts_any_size = request.accepts_any_size});
  for (const ReadFile& read : store.files_read())
    scenario.files.push_back(read.file);
  if (!request.text)
    scenario.files.push_back(name);
  return scenario;
}

}  // namespace lockstep
