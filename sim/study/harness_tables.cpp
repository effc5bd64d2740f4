#include "sim/study/harness_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/scenario/exact_text.h"
#include "sim/study/harness_figures.h"
#include "sim/study/median.h"

namespace lockstep {
namespace {

MeasuredTable table_of(const HarnessRun& run, const std::string& machine) {
  MeasuredTable table{.id = run.name, .source = run.file, .group = "own runs", .machine = machine};
  table.profile = machine;
  table.nodes = run.nodes;
  table.gpus_per_node = run.ranks / run.nodes;
  for (const CurvePoint& point : run.curve)
    table.rows.push_back(
        {.size = point.bytes, .time = Duration::picoseconds(std::llround(point.time.median * 1e12))});
  return table;
}

std::optional<double> median_of(const std::vector<RunFigures>& all,
                                std::optional<double> RunFigures::*figure) {
  std::vector<double> values;
  for (const RunFigures& figures : all)
    if (figures.*figure)
      values.push_back(*(figures.*figure));
  if (values.empty())
    return std::nullopt;
  return median(std::move(values));
}

}  // namespace

std::vector<MeasuredTable> tables_of_runs(std::span<const HarnessRun> runs, const std::string& machine) {
  std::vector<MeasuredTable> tables;
  for (const HarnessRun& run : runs)
    if (run.ranks > 1 && !run.curve.empty())
      tables.push_back(table_of(run, machine));
  return tables;
}

void add_run_figures(std::span<const HarnessRun> runs, CalibrationReport& report) {
  std::vector<RunFigures> all;
  for (const HarnessRun& run : runs) all.push_back(figures_of(run));
  if (const auto slowdown = median_of(all, &RunFigures::slowdown)) {
    report.calibration.compute_slowdown_ppm = to_four_digits(std::llround(*slowdown * 1e6));
    report.calibration.sm_interference_ppm = 0;
  }
  if (const auto per_byte = median_of(all, &RunFigures::copy_per_byte_s)) {
    const double per_tensor = median_of(all, &RunFigures::copy_per_tensor_s).value_or(0);
    report.calibration.copy_per_tensor =
        Duration::picoseconds(to_four_digits(std::llround(per_tensor * 1e12)));
    report.calibration.copy_bandwidth = Bandwidth{to_four_digits(std::llround(1 / *per_byte))};
  }
  nlohmann::ordered_json sources = report.profile.at("sources");
  sources["compute"] = "slow-down beside all-reduces and copies into buckets: timed alone by harness runs";
  report.profile = profile_of(report.calibration, std::move(sources));
}

}  // namespace lockstep
