// A trace of torch.profiler: a measured model; where a cluster is stated, the run that was traced, and where a model is
// named too, the traced step as that model's anchor.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/median.h"
#include "sim/load/import/importer.h"
#include "sim/load/import/packed_text.h"
#include "sim/load/import/trace_file.h"
#include "sim/load/import/trace_report.h"
#include "sim/load/import/trace_steps.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

std::optional<std::string> dtype_of(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, const char*>, 12> types{{{"float", "fp32"},
                                                                            {"Float", "fp32"},
                                                                            {"fp32", "fp32"},
                                                                            {"c10::Half", "fp16"},
                                                                            {"Half", "fp16"},
                                                                            {"fp16", "fp16"},
                                                                            {"c10::BFloat16", "bf16"},
                                                                            {"BFloat16", "bf16"},
                                                                            {"bf16", "bf16"},
                                                                            {"double", "fp64"},
                                                                            {"Double", "fp64"},
                                                                            {"fp64", "fp64"}}};
  for (const auto& [name, dtype] : types)
    if (name == type)
      return dtype;
  return std::nullopt;
}

// In the order of registration; where that is not recorded, the order in which gradients are ready, from behind.
void order_gradients(const TraceFile& trace, TracedRun& run) {
  for (TracedStep& step : run.steps)
    if (run.names_gradients)
      std::stable_sort(step.gradients.begin(), step.gradients.end(), [&](const auto& a, const auto& b) {
        return describe(a, trace).index < describe(b, trace).index;
      });
    else
      std::reverse(step.gradients.begin(), step.gradients.end());
}

bool are_alike(const TracedStep& left, const TracedStep& right, const TraceFile& trace) {
  return std::equal(left.gradients.begin(), left.gradients.end(), right.gradients.begin(),
                    right.gradients.end(), [&](const auto& a, const auto& b) {
                      const GradientFacts first = describe(a, trace);
                      const GradientFacts second = describe(b, trace);
                      return first.index == second.index && first.elements == second.elements;
                    });
}

// Those whose computing nothing disturbs: without collectives, where there are such.
std::vector<TracedStep> computing_steps(const TraceFile& trace, const TracedRun& run) {
  std::vector<TracedStep> alone;
  std::copy_if(run.steps.begin(), run.steps.end(), std::back_inserter(alone),
               [](const TracedStep& step) { return step.collectives.empty(); });
  if (alone.empty())
    alone = run.steps;
  std::erase_if(
      alone, [&, first = alone.front()](const TracedStep& step) { return !are_alike(step, first, trace); });
  return alone;
}

struct ReadTrace {
  TraceFile trace;
  TracedRun run;
  std::vector<TracedStep> computing;
  std::vector<GradientFacts> gradients;  // of each of these
};

ordered_json parameter_of(const ReadTrace& read, std::size_t index, Nanoseconds backward) {
  const GradientFacts& gradient = read.gradients[index];
  std::vector<double> ready;
  for (const TracedStep& step : read.computing)
    ready.push_back(static_cast<double>(step.gradients[index].ready));
  ordered_json parameter = ordered_json::object();
  if (!gradient.name.empty())
    parameter["name"] = gradient.name;
  parameter["elements"] = gradient.elements;
  if (const auto dtype = dtype_of(gradient.type))
    parameter["dtype"] = *dtype;
  parameter["gradient_ready"] = microseconds(std::min<Nanoseconds>(backward, std::llround(median(ready))));
  return parameter;
}

// Micro-batches before the last update nothing.
Nanoseconds optimizer_time(const ReadTrace& read) {
  for (const std::vector<TracedStep>* steps : {&read.computing, &read.run.steps}) {
    std::vector<TracedStep> updating;
    std::copy_if(steps->begin(), steps->end(), std::back_inserter(updating),
                 [](const TracedStep& step) { return step.has_update; });
    if (!updating.empty())
      return median_of(updating, &StepTimes::optimizer);
  }
  return median_of(read.computing, &StepTimes::optimizer);
}

ordered_json measured_model(const ReadTrace& read) {
  const Nanoseconds backward = median_of(read.computing, &StepTimes::backward);
  ordered_json measured{{"forward", microseconds(median_of(read.computing, &StepTimes::forward))},
                        {"backward", microseconds(backward)},
                        {"optimizer", microseconds(optimizer_time(read))},
                        {"parameters", ordered_json::array()}};
  for (std::size_t i = 0; i < read.gradients.size(); ++i)
    measured["parameters"].push_back(parameter_of(read, i, backward));
  return measured;
}

void ask_for_parameters(const ReadTrace& read, const char* path, std::vector<Question>& questions) {
  const bool has_sizes = std::all_of(read.gradients.begin(), read.gradients.end(),
                                     [](const GradientFacts& each) { return each.elements > 0; });
  if (read.gradients.empty() || !has_sizes)
    questions.push_back({.path = path,
                         .example = R"([{"elements":4096,"gradient_ready":"1 ms"}])",
                         .why = read.gradients.empty()
                                    ? "no gradient is recorded (torch::autograd::AccumulateGrad)"
                                    : "sizes of gradients are not recorded (torch.profiler's "
                                      "record_shapes=True does, and so do the "
                                      "marks of validate/measure_model.py)"});
}

std::vector<KeyUse> key_uses(const TraceFile& trace) {
  std::vector<KeyUse> uses;
  for (const auto& [key, is_read] : trace.keys)
    uses.push_back({.key = key,
                    .fate = is_read ? KeyFate::used : KeyFate::left_aside,
                    .said = is_read ? "read" : "says nothing of when what was done"});
  for (const auto& [category, count] : trace.ignored)
    uses.push_back(
        {.key = "category " + category,
         .fate = KeyFate::left_aside,
         .said = fmt::format("{} events that are neither operators, launches nor kernels", count)});
  return uses;
}

std::vector<std::string> warnings_of(const ReadTrace& read) {
  std::vector<std::string> warnings = read.run.warnings;
  if (!read.run.names_gradients)
    warnings.push_back(
        "the order in which parameters are registered is not recorded: it is taken to be the reverse of the "
        "order "
        "in which their gradients are ready");
  if (!read.computing.front().collectives.empty())
    warnings.push_back(
        "every step of the trace ran beside collectives, which slow computing: steps under no_sync() would "
        "tell how "
        "much");
  if (read.run.unlaunched_kernels > 0)
    warnings.push_back(
        fmt::format("{} kernels have no launch in the trace: they are placed by their own time",
                    read.run.unlaunched_kernels));
  if (std::any_of(read.gradients.begin(), read.gradients.end(),
                  [](const GradientFacts& each) { return !dtype_of(each.type); }))
    warnings.push_back("the type of a gradient is not recorded, or is none of ours: it is taken for fp32");
  return warnings;
}

ReadTrace read(const ImportRequest& request) {
  ReadTrace result;
  result.trace = read_trace(request);
  result.run = find_steps(result.trace, request.file_name);
  order_gradients(result.trace, result.run);
  result.computing = computing_steps(result.trace, result.run);
  for (const TracedGradient& gradient : result.computing.front().gradients)
    result.gradients.push_back(describe(gradient, result.trace));
  return result;
}

std::string source_of(const ReadTrace& read, const ImportRequest& request) {
  return fmt::format("{}: trace of torch.profiler, medians of {} steps{}",
                     std::filesystem::path(request.file_name).filename().string(), read.computing.size(),
                     read.trace.devices.empty() ? std::string(" on a CPU")
                                                : fmt::format(" on {}", read.trace.devices.front()));
}

std::int64_t bytes_of(const std::string& dtype) {
  return dtype == "fp64" ? 8 : dtype == "fp32" ? 4 : 2;
}

// "gloo:all_reduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "_allgather_base"; empty: none that is predicted.
std::string collective_kind(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (c != '_')
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::array<std::pair<std::string_view, const char*>, 4> kinds{
      {{"allreduce", "all_reduce"},
       {"allgather", "all_gather"},
       {"reducescatter", "reduce_scatter"},
       {"broadcast", "broadcast"}}};
  for (const auto& [part, kind] : kinds)
    if (letters.find(part) != std::string::npos)
      return kind;
  return {};
}

// A gathered buffer counts as a whole.
std::int64_t payload(const TensorFacts& facts, const std::string& dtype, std::string_view kind) {
  return facts.elements * bytes_of(dtype) * (kind == "all_gather" ? std::max(facts.group, 1) : 1);
}

std::vector<ObservedCollective> observed_collectives(const ReadTrace& read) {
  std::map<std::pair<std::string, std::int64_t>, std::vector<double>> times;
  double steps = 0;
  for (const TracedStep& step : read.run.steps) {
    steps += step.collectives.empty() ? 0 : 1;
    for (const TracedCollective& each : step.collectives) {
      const TensorFacts facts = each.facts == no_facts ? TensorFacts{} : read.trace.facts[each.facts];
      const std::string kind = collective_kind(read.trace.names[each.name]);
      const auto dtype = dtype_of(read.trace.names[facts.type]);
      if (!kind.empty() && dtype && facts.elements > 0)
        times[{kind, payload(facts, *dtype, kind)}].push_back(static_cast<double>(each.duration));
    }
  }
  std::vector<ObservedCollective> observed;
  for (const auto& [what, each] : times)
    observed.push_back({.kind = what.first,
                        .bytes = what.second,
                        .calls = static_cast<double>(each.size()) / steps,
                        .time = Duration::nanoseconds(std::llround(median(each)))});
  return observed;
}

Imported without_document(const ReadTrace& read) {
  return {.document = {},
          .keys = key_uses(read.trace),
          .warnings = warnings_of(read),
          .collectives = observed_collectives(read),
          .report = trace_report(read.trace, read.run)};
}

bool sends(const ReadTrace& read) {
  return std::any_of(read.run.steps.begin(), read.run.steps.end(),
                     [](const TracedStep& step) { return !step.collectives.empty(); });
}

// The wrapper of PyTorch's that was used; its first strategy is the default. Empty: none is known.
std::string framework_of(const TraceFile& trace) {
  return trace.is_distributed_data_parallel ? "pytorch_ddp" : trace.is_fully_sharded ? "pytorch_fsdp" : "";
}

bool is_of_one_gpu(const ReadTrace& read) {
  return !sends(read) && framework_of(read.trace).empty();
}

ordered_json training_of(const ReadTrace& read, std::vector<Question>& questions) {
  ordered_json training = ordered_json::object();
  if (const std::string framework = framework_of(read.trace); !framework.empty())
    training["framework"] = framework;
  else if (sends(read))
    questions.push_back(
        {.path = "training.strategy",
         .example = "NAME",
         .why = "the trace has collectives, and no wrapper of PyTorch's that would explain them"});
  else
    training["strategy"] = one_gpu_strategy();
  constexpr std::array<std::pair<std::string_view, const char*>, 3> optimizers{
      {{"SGD.step", "sgd"}, {"Adam.step", "adam"}, {"AdamW.step", "adamw"}}};
  for (const auto& [name, optimizer] : optimizers)
    if (read.run.optimizer == name)
      training["optimizer"] = optimizer;
  return training;
}

// On which machines the ranks were, no trace says.
ordered_json cluster_of(const ReadTrace& read, const ImportRequest& request,
                        std::vector<Question>& questions) {
  ordered_json cluster = ordered_json::object();
  questions.push_back(
      {.path = "cluster.machine", .example = "dgx_a100_80gb", .why = "a trace does not name its machine"});
  const std::int64_t ranks = read.trace.world_size;
  if (ranks <= 1 && is_of_one_gpu(read))
    return {{"nodes", 1}, {"gpus_per_node", 1}};
  questions.push_back(
      {.path = "cluster.nodes",
       .example = "2",
       .why = ranks > 0 ? fmt::format("the trace is of {} ranks and does not say on how many nodes", ranks)
                        : std::string("the trace does not say on how many nodes it ran")});
  const ordered_json stated = request.stated.contains("cluster") ? request.stated["cluster"] : ordered_json();
  if (ranks > 0 && stated.contains("nodes") && stated["nodes"].is_number_integer()) {
    const auto nodes = stated["nodes"].get<std::int64_t>();
    if (nodes < 1 || ranks % nodes != 0)
      throw ConfigError(
          fmt::format("{}: cluster.nodes: found {}, expected a number of nodes that {} ranks are dealt to",
                      request.file_name, nodes, ranks));
    cluster["gpus_per_node"] = ranks / nodes;
  }
  return cluster;
}

// The step of one GPU without communication: what a model that is named takes, under the conditions that stand
// beside it.
ordered_json anchor_of(const ReadTrace& read) {
  Nanoseconds time = optimizer_time(read);
  for (auto part : {&StepTimes::forward, &StepTimes::backward}) time += median_of(read.computing, part);
  return {{"single_gpu_iteration", microseconds(time)}};
}

Imported run_of(const ReadTrace& trace, const ImportRequest& request) {
  Imported imported = without_document(trace);
  imported.makes = ImportedThing::scenario;
  imported.document = {
      {"name", fmt::format("run of {}", std::filesystem::path(request.file_name).filename().string())},
      {"source", source_of(trace, request)},
      {"cluster", cluster_of(trace, request, imported.questions)},
      {"model", ordered_json::object()},
      {"training", training_of(trace, imported.questions)}};
  if (trace.trace.backend == "gloo" || trace.trace.backend == "nccl")
    imported.document["communication"] = {{"library", trace.trace.backend}};
  if (request.stated.contains("model")) {
    imported.document["compute"] = anchor_of(trace);
  } else {
    ask_for_parameters(trace, "model.measured.parameters", imported.questions);
    imported.document["model"]["measured"] = measured_model(trace);
  }
  return imported;
}

Imported model_of(const ReadTrace& trace, const ImportRequest& request) {
  Imported imported = without_document(trace);
  ask_for_parameters(trace, "measured.parameters", imported.questions);
  imported.document = {
      {"name", "traced model"}, {"source", source_of(trace, request)}, {"measured", measured_model(trace)}};
  return imported;
}

Imported import_trace(const ImportRequest& request) {
  const ReadTrace trace = read(request);
  return request.stated.contains("cluster") ? run_of(trace, request) : model_of(trace, request);
}

bool recognises_trace(std::string_view beginning) {
  const std::string text = unpacked_beginning(beginning);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || (text[first] != '{' && text[first] != '['))
    return false;
  return text.find("\"traceEvents\"") != std::string::npos ||
         (text.find("\"schemaVersion\"") != std::string::npos &&
          text.find("\"deviceProperties\"") != std::string::npos) ||
         (text.find("\"ph\"") != std::string::npos && text.find("\"ts\"") != std::string::npos);
}

const Registration<Importer> kineto{
    "kineto",
    Importer{.import = import_trace,
             .recognises = recognises_trace,
             .makes = ImportedThing::model,
             .description = "trace of PyTorch's profiler, plain or gzip: a measured model, or with --set "
                            "cluster.machine=NAME the run that was traced"}};

}  // namespace
}  // namespace lockstep
