#include "sim/study/validation/stated_case.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <system_error>

#include "sim/base/json_reader.h"
#include "sim/load/load.h"
#include "sim/report/prediction.h"
#include "sim/report/throughput.h"
#include "sim/study/validation/naive_predictions.h"

namespace lockstep {
namespace {

LoadedScenario load_case(const StatedCase& stated, const ProfileStore& store, bool with_overlap) {
  LoadOptions options{.store = store,
                      .file_name = stated.scenario_file,
                      .folder = std::filesystem::path(stated.scenario_file).parent_path().string(),
                      .overrides = stated.overrides,
                      .accepts_any_size = stated.accepts_any_size};
  if (!with_overlap)
    options.overrides.emplace_back("communication.overlap", "false");
  return load_value(stated.scenario, options);
}

double measured_iteration(const StatedCase& stated, const Scenario& scenario) {
  if (stated.iteration_s)
    return *stated.iteration_s;
  if (stated.flops_per_gpu) {
    const std::optional<double> flops = model_flops_of_gpu(scenario);
    if (!flops)
      throw ConfigError(
          {fmt::format("{}: {}: /measured/tflops_per_gpu: found beside a model whose FLOPs are not known; "
                       "expected iteration_time_s or samples_per_s",
                       stated.scenario_file, stated.result.name)});
    return *flops / *stated.flops_per_gpu;
  }
  const Throughput throughput = find_throughput(scenario, Duration::zero());
  if (stated.samples_per_s)
    return static_cast<double>(throughput.samples_per_iteration) / *stated.samples_per_s;
  return static_cast<double>(throughput.tokens_per_iteration.value_or(0)) / *stated.tokens_per_s;
}

Bytes counted_of(const MemoryUse& peak, MemoryCounted counted) {
  switch (counted) {
    case MemoryCounted::allocated:
      return peak.allocated();
    case MemoryCounted::reserved:
      return peak.reserved();
    case MemoryCounted::device:
      break;
  }
  return peak.total();
}

ValidationCase memory_case(const StatedCase& stated, const MemoryReport& memory) {
  ValidationCase result = stated.result;
  result.is_memory = true;
  result.measured_s = stated.memory->bytes;
  result.predicted_s = static_cast<double>(counted_of(memory.peak, stated.memory->counted).count());
  return result;
}

// What a step takes but for its optimizer, whose share of a block nobody timed with it.
double work_s(const Report& report) {
  return (report.iteration - report.breakdown.optimizer).in_seconds();
}

std::int64_t stated_blocks(const StatedCase& stated) {
  std::string blocks;
  if (stated.scenario.contains(nlohmann::ordered_json::json_pointer("/model/layers")))
    blocks = stated.scenario["model"]["layers"].dump();
  for (const auto& [path, value] : stated.overrides)
    if (path == "model.layers")
      blocks = value;
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(blocks.data(), blocks.data() + blocks.size(), count);
  if (error != std::errc() || end != blocks.data() + blocks.size() || count < 2)
    throw ConfigError({fmt::format("{}: {}: /model/layers: found {}; expected 2 or more where a block was "
                                   "measured",
                                   stated.scenario_file, stated.result.name,
                                   blocks.empty() ? "nothing" : blocks)});
  return count;
}

ValidationCase block_case(const StatedCase& stated, const ProfileStore& store, const Report& whole) {
  StatedCase without = stated;
  without.overrides.emplace_back("model.layers", std::to_string(stated_blocks(stated) - 1));
  ValidationCase result = stated.result;
  result.is_block = true;
  result.measured_s = *stated.block_s;
  result.predicted_s =
      work_s(whole) - work_s(predict(load_case(without, store, true), {.with_band = false}).report);
  return result;
}

ValidationCase step_case(const StatedCase& stated, const ProfileStore& store, const Scenario& scenario,
                         const Report& report) {
  ValidationCase result = stated.result;
  result.predicted_s = report.iteration.in_seconds();
  result.measured_s = measured_iteration(stated, scenario);
  if (report.times.low)
    result.low_s = report.times.low->in_seconds();
  if (report.times.high)
    result.high_s = report.times.high->in_seconds();
  result.band = report.band;
  for (const BucketReport& bucket : report.communication.buckets) result.buckets.push_back(bucket.bytes);
  result.naive = naive_predictions(load_case(stated, store, false));
  return result;
}

}  // namespace

std::optional<TimedCase> timed_case(const StatedCase& stated, const ProfileStore& store) {
  if (stated.memory || stated.block_s)
    return std::nullopt;
  LoadedScenario scenario = load_case(stated, store, true);
  const double iteration = measured_iteration(stated, scenario);
  return TimedCase{.resolved = std::move(scenario.resolved), .iteration_s = iteration};
}

ValidationCase run_case(const StatedCase& stated, const ProfileStore& store, const ErrorModel* errors) {
  LoadedScenario scenario = load_case(stated, store, true);
  if (errors != nullptr)
    scenario.errors = *errors;
  const Report report = predict(scenario).report;
  ValidationCase result = stated.memory    ? memory_case(stated, report.memory)
                          : stated.block_s ? block_case(stated, store, report)
                                           : step_case(stated, store, scenario, report);
  if (result.machine.empty())
    result.machine = scenario.cluster.machine.name;
  result.warnings = std::move(scenario.warnings);
  return result;
}

}  // namespace lockstep
