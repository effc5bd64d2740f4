#include "sim/study/validation/stated_case.h"

#include <filesystem>

#include "sim/load/load.h"
#include "sim/report/prediction.h"
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

double measured_iteration(const StatedCase& stated, const Report& report) {
  if (stated.iteration_s)
    return *stated.iteration_s;
  if (stated.samples_per_s)
    return static_cast<double>(report.throughput.samples_per_iteration) / *stated.samples_per_s;
  return static_cast<double>(report.throughput.tokens_per_iteration.value_or(0)) / *stated.tokens_per_s;
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

}  // namespace

ValidationCase run_case(const StatedCase& stated, const ProfileStore& store, const ErrorModel* errors) {
  LoadedScenario scenario = load_case(stated, store, true);
  if (errors != nullptr)
    scenario.errors = *errors;
  const Report report = predict(scenario).report;
  if (stated.memory)
    return memory_case(stated, report.memory);
  ValidationCase result = stated.result;
  result.predicted_s = report.iteration.in_seconds();
  result.measured_s = measured_iteration(stated, report);
  if (report.times.low)
    result.low_s = report.times.low->in_seconds();
  if (report.times.high)
    result.high_s = report.times.high->in_seconds();
  result.band = report.band;
  for (const BucketReport& bucket : report.communication.buckets) result.buckets.push_back(bucket.bytes);
  result.naive = naive_predictions(load_case(stated, store, false));
  return result;
}

}  // namespace lockstep
