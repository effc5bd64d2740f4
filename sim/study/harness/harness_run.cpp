#include "sim/study/harness/harness_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/json_reader.h"
#include "sim/load/reading/fields.h"

namespace lockstep {
namespace {

constexpr double longest_s = 1e6;
constexpr double shortest_s = 1e-12;
constexpr std::int64_t most_count = 1'000'000'000'000'000;
constexpr std::int64_t most_ranks = 1'000'000;

// What the harness may have been told to leave out: null, but never missing.
std::optional<JsonReader> required_or_null(const JsonReader& json, std::string_view key) {
  const std::optional<JsonReader> found = json.optional(key);
  const bool is_null = json.is_object() && json.value().contains(key);
  return found || is_null ? found : std::optional(json.required(key));
}

// A time that may be nothing at all: a ReLU's backward, an optimizer that was not asked for.
double read_seconds(const JsonReader& json) {
  return json.number(0, longest_s, "seconds");
}

double read_positive_seconds(const JsonReader& json) {
  return json.number(shortest_s, longest_s, "seconds, above 0");
}

Bytes read_bytes(const JsonReader& json) {
  return Bytes{json.integer(1, most_count)};
}

std::vector<JsonReader> elements_of(const JsonReader& json) {
  return json.is_missing() ? std::vector<JsonReader>{} : json.elements();
}

template <class T, class Read>
std::vector<T> read_list(const JsonReader& json, Read read) {
  std::vector<T> list;
  for (const JsonReader& element : elements_of(json)) list.push_back(read(element));
  return list;
}

TimeStatistics read_statistics(const JsonReader& json) {
  TimeStatistics statistics{.median = read_seconds(json.required("median")),
                            .mean = read_seconds(json.required("mean")),
                            .p10 = read_seconds(json.required("p10")),
                            .p90 = read_seconds(json.required("p90")),
                            .least = read_seconds(json.required("least")),
                            .count = json.required("count").integer(1, most_count)};
  json.finish();
  if (statistics.p10 > statistics.p90)
    json.problem("expected p10 to be at most p90");
  return statistics;
}

TimeStatistics read_positive_statistics(const JsonReader& json) {
  const TimeStatistics statistics = read_statistics(json);
  if (json.is_object() && !(statistics.median > 0))
    json.problem("expected a median above 0");
  return statistics;
}

// "NCCL 2.28.9", "Gloo 0.5.0", "none"; files that do not say it were reduced by what goes with their backend.
void read_library(const JsonReader& json, HarnessRun& run) {
  const std::string text = text_or(json, "communication", "");
  const std::string name = text.substr(0, text.find(' '));
  if (name.empty())
    run.library = run.backend == "cuda" ? RunLibrary::nccl : RunLibrary::gloo;
  else if (name == "NCCL")
    run.library = RunLibrary::nccl;
  else if (name == "Gloo")
    run.library = RunLibrary::gloo;
  else if (name != "none")
    json.problem(
        fmt::format("found the communication \"{}\", expected that of NCCL, of Gloo, or none", text));
  if (name.size() + 1 < text.size())
    run.library_version = text.substr(name.size() + 1);
}

void read_harness(const JsonReader& json, HarnessRun& run) {
  const std::vector<std::string> backends{"cpu", "cuda"};
  run.backend = json.required("backend").one_of(backends);
  run.device = text_or(json, "device", "");
  read_library(json, run);
  for (const char* key : {"version", "libraries", "compiler"}) text_or(json, key, "");
  json.finish();
}

void read_machine(const JsonReader& json, HarnessRun& run) {
  run.machine_class = text_or(json, "class", "");
  run.gpus_shared = boolean_or(json, "gpus_shared", false);
}

void read_network(const JsonReader& json, HarnessRun& run) {
  const std::vector<std::string> kinds{"shaped", "loopback", "as_found"};
  run.network = json.required("kind").one_of(kinds);
  if (const auto goodput = json.optional("goodput_byte_s"))
    run.goodput = Bandwidth{static_cast<std::int64_t>(goodput->number(1, 1e15, "bytes per second"))};
  for (const char* key : {"link_rate_bit_s", "mtu_bytes", "note"}) json.optional(key);
  json.finish();
}

RunParameter read_parameter(const JsonReader& json) {
  RunParameter parameter{.name = json.required("name").text(),
                         .elements = json.required("elements").integer(1, most_count),
                         .gradient_ready_s = 0};
  if (const auto ready = required_or_null(json, "gradient_ready_s"))
    parameter.gradient_ready_s = read_seconds(*ready);
  json.finish();
  return parameter;
}

RunModel read_model(const JsonReader& json) {
  RunModel model{.name = json.required("name").text(),
                 .batch_per_rank = json.required("batch_per_rank").integer(1, 1'000'000'000),
                 .precision = json.required("precision").text(),
                 .optimizer = json.required("optimizer").text(),
                 .simulated_as = nullptr,
                 .parameters = read_list<RunParameter>(json.required("parameters"), read_parameter)};
  if (const auto simulated = json.optional("simulated_as"))
    model.simulated_as = simulated->value();
  for (const char* key : {"sizes", "forward_flops", "buffer_bytes"}) json.optional(key);
  json.finish();
  if (model.parameters.empty() && !json.is_missing())
    json.problem("expected at least one parameter");
  return model;
}

std::uint32_t read_parameter_index(const JsonReader& json, std::size_t parameters) {
  const std::int64_t last = static_cast<std::int64_t>(std::max<std::size_t>(parameters, 1)) - 1;
  return static_cast<std::uint32_t>(json.integer(0, last));
}

RunLayer read_layer(const JsonReader& json, std::size_t parameters) {
  RunLayer layer{.name = json.required("name").text(), .parameters = {}};
  for (const JsonReader& index : elements_of(json.required("parameters")))
    layer.parameters.push_back(read_parameter_index(index, parameters));
  layer.forward_s = read_seconds(json.required("forward_s"));
  layer.backward_s = read_seconds(json.required("backward_s"));
  json.finish();
  return layer;
}

void read_alone(const JsonReader& json, HarnessRun& run) {
  run.alone = StepStatistics{.iteration = read_positive_statistics(json.required("iteration_s")),
                        .forward = read_statistics(json.required("forward_s")),
                        .backward = read_positive_statistics(json.required("backward_s")),
                        .optimizer = read_statistics(json.required("optimizer_s"))};
  json.optional("marked_backward_s");  // for people
  const std::size_t parameters = run.model.parameters.size();
  run.layers = read_list<RunLayer>(json.required("layers"), [parameters](const JsonReader& layer) {
    return read_layer(layer, parameters);
  });
  json.finish();
}

// How the harness timed a call, beside the time that counts.
void pass_over_times(const JsonReader& json) {
  for (const char* key : {"from_idle_s", "back_to_back_s"}) json.optional(key);
}

CurvePoint read_curve_point(const JsonReader& json) {
  CurvePoint point{.bytes = read_bytes(json.required("bytes")),
                   .time = read_positive_statistics(json.required("time_s"))};
  pass_over_times(json);
  json.finish();
  return point;
}

std::vector<CurvePoint> read_curve(const JsonReader& json) {
  std::vector<CurvePoint> curve;
  for (const JsonReader& element : elements_of(json)) {
    curve.push_back(read_curve_point(element));
    if (curve.size() > 1 && curve.back().bytes <= curve[curve.size() - 2].bytes)
      element.problem("expected sizes in ascending order of bytes");
  }
  return curve;
}

BucketCopyPoint read_bucket_copy(const JsonReader& json) {
  BucketCopyPoint point{.tensors = json.required("tensors").integer(1, most_count),
                        .bytes = read_bytes(json.required("bytes")),
                        .time = read_positive_statistics(json.required("time_s"))};
  pass_over_times(json);
  json.finish();
  return point;
}

InterferencePoint read_interference(const JsonReader& json) {
  InterferencePoint point{.bytes = read_bytes(json.required("bytes")),
                          .compute_alone_s = read_positive_seconds(json.required("compute_alone_s")),
                          .compute_beside_s = read_positive_seconds(json.required("compute_beside_s")),
                          .collectives = json.required("collectives").number(0, 1e12, "a count"),
                          .collective_alone_s = read_positive_seconds(json.required("collective_alone_s")),
                          .collective_beside_s = read_positive_seconds(json.required("collective_beside_s"))};
  json.optional("covered");
  json.finish();
  return point;
}

CopyInterferencePoint read_copy_interference(const JsonReader& json) {
  CopyInterferencePoint point{.bytes = read_bytes(json.required("bytes")),
                              .copy_alone_s = read_positive_seconds(json.required("copy_alone_s")),
                              .compute_alone_s = read_positive_seconds(json.required("compute_alone_s")),
                              .compute_beside_s = read_positive_seconds(json.required("compute_beside_s"))};
  for (const char* key : {"copy_beside_s", "covered"}) json.optional(key);
  json.finish();
  return point;
}

FailedMeasurement read_failure(const JsonReader& json) {
  FailedMeasurement failure{.measurement = json.required("measurement").text(),
                            .bytes = {},
                            .reason = json.required("reason").text()};
  if (const auto bytes = json.optional("bytes"))
    failure.bytes = Bytes{bytes->integer(0, most_count)};
  json.finish();
  return failure;
}

MatmulPoint read_matmul(const JsonReader& json) {
  constexpr std::int64_t longest_side = 10'000'000;
  const std::vector<std::string> multiplied{"fp32", "tf32", "fp16", "bf16", "fp8"};
  MatmulPoint point{.rows = json.required("rows").integer(1, longest_side),
                    .columns = json.required("columns").integer(1, longest_side),
                    .inner = json.required("inner").integer(1, longest_side),
                    .precision = json.required("precision").one_of(multiplied),
                    .time_s = read_positive_seconds(json.required("time_s"))};
  pass_over_times(json);
  json.finish();
  return point;
}

MemoryCopyPoint read_memory_copy(const JsonReader& json) {
  MemoryCopyPoint point{.bytes = read_bytes(json.required("bytes")),
                        .time_s = read_positive_seconds(json.required("time_s"))};
  pass_over_times(json);
  json.finish();
  return point;
}

Bytes read_bucket(const JsonReader& json) {
  return read_bytes(json.required("bytes"));
}

MeasuredIteration read_iteration(const JsonReader& json) {
  MeasuredIteration measured{
      .bucket_cap_mb = json.required("bucket_cap_mb").number(1e-6, 1e6, "MiB"),
      .overlap = json.required("overlap").boolean(),
      .gradient_accumulation = json.required("gradient_accumulation").integer(1, 1'000'000),
      .compression = json.required("compression").text(),
      .iteration = read_positive_statistics(json.required("iteration_s")),
      .buckets = {}};
  if (const auto buckets = json.optional("buckets"))
    measured.buckets = read_list<Bytes>(*buckets, read_bucket);
  for (const char* key : {"first_iteration_s", "forward_s", "backward_s", "optimizer_s", "overlap_share"})
    json.optional(key);
  json.finish();
  return measured;
}

void read_microbenchmarks(const JsonReader& json, HarnessRun& run) {
  run.curve = read_curve(json.required("collective_curve"));
  run.copies = read_list<BucketCopyPoint>(json.required("bucket_copies"), read_bucket_copy);
  run.interference = read_list<InterferencePoint>(json.required("interference"), read_interference);
  if (const auto copies = json.optional("copy_interference"))
    run.copy_interference = read_copy_interference(*copies);
  run.matmuls = read_list<MatmulPoint>(json.required("matmuls"), read_matmul);
  run.memory_copies = read_list<MemoryCopyPoint>(json.required("memory_copies"), read_memory_copy);
}

HarnessRun read_run(const JsonReader& root) {
  HarnessRun run;
  const std::vector<std::string> schemas{std::string(harness_run_schema)};
  root.required("schema").one_of(schemas);
  run.file = root.file_name();
  run.name = root.required("name").text();
  run.date = text_or(root, "date", "");
  read_harness(root.required("harness"), run);
  read_machine(root.required("machine"), run);
  run.ranks = root.required("ranks").integer(1, most_ranks);
  run.nodes = root.required("nodes").integer(1, most_ranks);
  read_network(root.required("network"), run);
  run.model = read_model(root.required("model"));
  if (const auto alone = required_or_null(root, "without_communication"))
    read_alone(*alone, run);
  read_microbenchmarks(root, run);
  run.iterations = read_list<MeasuredIteration>(root.required("iterations"), read_iteration);
  if (const auto failed = root.optional("failed"))
    run.failed = read_list<FailedMeasurement>(*failed, read_failure);
  for (const char* key : {"kernel_choices", "losses"}) root.optional(key);  // for people and pictures
  root.finish();
  if (run.ranks % run.nodes != 0)
    root.problem(fmt::format("found {} ranks on {} nodes, expected as many on each", run.ranks, run.nodes));
  return run;
}

}  // namespace

std::vector<std::string> describe_failures(const HarnessRun& run) {
  std::vector<std::string> sentences;
  for (const FailedMeasurement& failure : run.failed) {
    const bool has_size = failure.bytes && *failure.bytes > Bytes{0};
    sentences.push_back(fmt::format("{}{} failed and is left out: {}", failure.measurement,
                                    has_size ? " of " + format_bytes(*failure.bytes) : "", failure.reason));
  }
  return sentences;
}

HarnessRun read_harness_run(const std::string& file) {
  JsonDocument document = JsonDocument::from_file(file);
  HarnessRun run = read_run(document.root());
  document.throw_if_problems();
  return run;
}

bool is_harness_run(const std::string& file) {
  const JsonDocument document = JsonDocument::from_file(file);
  const nlohmann::ordered_json& value = document.value();
  return value.is_object() && value.contains("schema") && value["schema"] == harness_run_schema;
}

}  // namespace lockstep
