#include "sim/study/fit/harness_gpu_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/median.h"
#include "sim/network/interference.h"
#include "sim/study/bench/collective_table.h"
#include "sim/study/harness/harness_figures.h"

namespace lockstep {
namespace {

constexpr double passes_a_copied_byte = 2;
// What a calibration may state.
constexpr double most_sm_interference = 100;

MeasuredTable table_of(const HarnessRun& run, const std::string& machine) {
  MeasuredTable table{.id = run.name, .source = run.file, .group = "own runs", .machine = machine};
  table.profile = machine;
  table.nodes = run.nodes;
  table.gpus_per_node = run.ranks / run.nodes;
  table.library_version = run.library_version;
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

// Computing beside all-reduces of a size, and the SMs that their channels hold.
struct Beside {
  const HarnessRun& run;
  const InterferencePoint& point;
  std::int64_t channels;
  std::int64_t sms;

  double slower() const { return std::max(point.compute_beside_s / point.compute_alone_s, 1.0); }
  double held_share() const { return static_cast<double>(channels) / static_cast<double>(sms); }
  double moved_per_s() const {
    return static_cast<double>(passes_a_sent_byte) * run.sent_bytes(point.bytes) / point.collective_beside_s;
  }
};

// `calibration` predicts how many channels all-reduces take.
std::vector<Beside> besides_of(std::span<const HarnessRun> runs, const Calibration& calibration,
                               const std::string& machine, const ProfileStore& store) {
  std::vector<Beside> besides;
  for (const HarnessRun& run : runs) {
    if (run.ranks < 2 || run.interference.empty())
      continue;
    Scenario scenario = load_collective_setting(
        {.machine = machine, .nodes = run.nodes, .gpus_per_node = run.ranks / run.nodes}, store);
    scenario.cluster.calibration = calibration;
    const CollectiveBench bench(scenario);
    for (const InterferencePoint& point : run.interference)
      if (point.collectives > 0)
        besides.push_back({.run = run,
                           .point = point,
                           .channels = bench.predict(CollectiveOp::all_reduce, point.bytes).channels,
                           .sms = scenario.cluster.gpu.sms});
  }
  return besides;
}

// How much longer computing takes where nothing but so many bytes a second of its memory are taken; linear
// between nothing and the copies that were measured.
double slowdown_by_traffic(const CopyInterferencePoint& copies, double bytes_per_s) {
  const double copied =
      passes_a_copied_byte * static_cast<double>(copies.bytes.count()) / copies.copy_alone_s;
  const double beside_copies = std::max(copies.compute_beside_s / copies.compute_alone_s, 1.0);
  return 1 + (beside_copies - 1) * std::min(bytes_per_s / copied, 1.0);
}

// What computing loses while any collective runs, and for each part of the SMs that it holds.
struct Slowdown {
  double factor = 1;
  double a_share_of_sms = 0;
};

Slowdown part(const std::vector<Beside>& besides, const CopyInterferencePoint& copies) {
  std::vector<double> by_traffic;
  std::vector<double> by_sms;
  for (const Beside& beside : besides) {
    by_traffic.push_back(std::min(slowdown_by_traffic(copies, beside.moved_per_s()), beside.slower()));
    by_sms.push_back(
        std::min((beside.slower() - by_traffic.back()) / beside.held_share(), most_sm_interference));
  }
  return {.factor = median(std::move(by_traffic)), .a_share_of_sms = median(std::move(by_sms))};
}

Ratio in_four_digits(double ratio) {
  return Ratio::parts_per_million(to_four_digits(std::llround(ratio * 1e6)));
}

// Puts what no table of collectives tells into a report's calibration, and what that makes of every point.
class RunFigureWriter {
 public:
  RunFigureWriter(std::span<const HarnessRun> runs, CalibrationReport& report)
      : runs_(runs), report_(report) {
    for (const HarnessRun& run : runs) all_.push_back(figures_of(run));
  }

  void put_slowdown(const std::vector<Beside>& besides) {
    const auto whole = median_of(all_, &RunFigures::slowdown);
    if (!whole) {
      report_.warnings.emplace_back(
          "computing beside all-reduces was not measured: its slow-down is that of the profile before, or "
          "else follows from what bounds each kernel");
      return;
    }
    const auto copies = std::find_if(runs_.begin(), runs_.end(),
                                     [](const HarnessRun& run) { return run.copy_interference.has_value(); });
    if (copies == runs_.end())
      report_.warnings.emplace_back(
          "computing was not timed beside copies: what bandwidth and what SMs cost it cannot be told apart, "
          "so all of its slow-down holds beside any collective, however few SMs that holds");
    put(copies == runs_.end() ? Slowdown{.factor = *whole} : part(besides, *copies->copy_interference));
    for (const Beside& beside : besides) append_point(beside);
  }

  void put_copies() {
    const auto per_byte = median_of(all_, &RunFigures::copy_per_byte_s);
    if (!per_byte)
      return;
    const double per_tensor = median_of(all_, &RunFigures::copy_per_tensor_s).value_or(0);
    Calibration& calibration = report_.calibration;
    calibration.copy_per_tensor = Duration::picoseconds(to_four_digits(std::llround(per_tensor * 1e12)));
    calibration.copy_bandwidth = Bandwidth{to_four_digits(std::llround(1 / *per_byte))};
    report_.computing.push_back({"gradient_copy.per_tensor", per_tensor * 1e6, "us"});
    report_.computing.push_back({"gradient_copy.bandwidth", 1 / *per_byte / 1e9, "GB/s"});
    for (const HarnessRun& run : runs_)
      for (const BucketCopyPoint& point : run.copies) append_point(run, point);
  }

 private:
  void put(const Slowdown& slowdown) {
    report_.calibration.compute_slowdown = in_four_digits(slowdown.factor);
    report_.calibration.sm_interference = in_four_digits(slowdown.a_share_of_sms);
    report_.computing.push_back({"compute_slowdown", slowdown.factor, ""});
    report_.computing.push_back({"sm_interference", slowdown.a_share_of_sms, ""});
  }

  void append_point(const Beside& beside) {
    const Calibration& measured = report_.calibration;
    const Interference interference{.slowdown = measured.compute_slowdown.value_or(Ratio::one()),
                                    .sm_interference = measured.sm_interference.value_or(Ratio{}),
                                    .sms = beside.sms};
    const double slower = interference.slowdown_beside(beside.channels).in_real();
    report_.computing_points.push_back({.run = beside.run.name,
                                        .what = "compute beside",
                                        .bytes = beside.point.bytes,
                                        .measured_s = beside.point.compute_beside_s,
                                        .predicted_s = beside.point.compute_alone_s * slower});
  }

  void append_point(const HarnessRun& run, const BucketCopyPoint& point) {
    const Calibration& calibration = report_.calibration;
    const double moving = time_to_move(point.bytes, *calibration.copy_bandwidth).in_seconds();
    const double tensors = static_cast<double>(point.tensors) * calibration.copy_per_tensor.in_seconds();
    report_.computing_points.push_back({.run = run.name,
                                        .what = "bucket copy",
                                        .bytes = point.bytes,
                                        .measured_s = point.time.median,
                                        .predicted_s = tensors + moving});
  }

  std::span<const HarnessRun> runs_;
  CalibrationReport& report_;
  std::vector<RunFigures> all_;
};

void check_machine(std::span<const HarnessRun> runs, const MachineSpec& machine) {
  if (machine.library == LibraryKind::gloo)
    throw ConfigError(
        fmt::format("{}: was measured over NCCL, and a {} runs Gloo", runs.front().file, machine.name));
  for (const HarnessRun& run : runs)
    if (run.ranks / run.nodes > machine.gpus)
      throw ConfigError(fmt::format("{}: /ranks: found {} on each node, and a {} has {} GPUs", run.file,
                                    run.ranks / run.nodes, machine.name, machine.gpus));
}

}  // namespace

std::vector<MeasuredTable> tables_of_runs(std::span<const HarnessRun> runs, const std::string& machine) {
  std::vector<MeasuredTable> tables;
  for (const HarnessRun& run : runs)
    if (run.ranks > 1 && !run.curve.empty())
      tables.push_back(table_of(run, machine));
  return tables;
}

void check_gpu_runs(std::span<const HarnessRun> runs) {
  std::vector<std::string> problems;
  for (const HarnessRun& run : runs) {
    if (run.gpus_shared)
      problems.push_back(run.file +
                         ": /machine/gpus_shared: found true: ranks took turns on a GPU, so its times are "
                         "those of neither; expected a GPU for each rank");
    if (run.library == RunLibrary::gloo)
      problems.push_back(run.file + ": /harness/communication: found Gloo, expected NCCL");
  }
  if (!problems.empty())
    throw ConfigError(problems);
}

CalibrationReport calibrate_to_gpu_runs(std::span<const HarnessRun> runs,
                                        const GpuCalibrationOptions& options, const ProfileStore& store) {
  check_gpu_runs(runs);
  const MachineSpec machine = load_collective_setting({.machine = options.machine}, store).cluster.machine;
  check_machine(runs, machine);
  CalibrationInputs inputs;
  inputs.machine = machine.name;
  inputs.profile = machine.name;
  inputs.tables = tables_of_runs(runs, options.machine);
  inputs.holds_nothing_out = options.holds_nothing_out;
  if (inputs.tables.empty())
    throw ConfigError(runs.front().file +
                      ": found no all-reduce of several ranks in collective_curve: communication cannot be "
                      "fitted");
  for (MeasuredTable& table : inputs.tables) table.profile = inputs.profile;
  CalibrationReport report = calibrate(inputs, store);
  RunFigureWriter writer(runs, report);
  writer.put_slowdown(besides_of(runs, report.calibration, options.machine, store));
  writer.put_copies();
  nlohmann::ordered_json sources = report.profile.at("sources");
  sources["compute"] = "slow-down beside all-reduces and copies into buckets: timed alone by harness runs";
  report.profile = profile_of(report.calibration, std::move(sources));
  return report;
}

}  // namespace lockstep
