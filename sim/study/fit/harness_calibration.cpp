#include "sim/study/fit/harness_calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/error.h"
#include "sim/base/median.h"
#include "sim/load/reading/fields.h"
#include "sim/report/text_table.h"
#include "sim/study/bench/collective_table.h"
#include "sim/study/fit/calibration_profile.h"
#include "sim/study/fit/core_use.h"
#include "sim/study/harness/harness_scenario.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// Runs whose figures lie further apart are told of.
constexpr double most_apart = 1.25;
constexpr double slack_of_a_wire = 0.005;

// A run with what its microbenchmarks say of it.
struct FittedRun {
  const HarnessRun& run;
  RunFigures figures;
};

using FittedRuns = std::vector<FittedRun>;

std::int64_t picoseconds(double seconds) {
  return to_four_digits(std::llround(seconds * 1e12));
}

ordered_json sources_of() {
  return {
      {"protocols", "ring steps of the smallest all-reduces; bytes are the link's"},
      {"unhidden_per_byte", "time a byte of all-reduces of 1 MiB and more, less the link's own"},
      {"gradient_copy", "copies of gradients into buckets and back, timed alone"},
      {"core_time_per_byte", "what computing loses beside all-reduces, two in flight, by byte sent"},
      {"rank_variation", "spread of the steps without communication, 10th to 90th percentile, of one rank"},
      {"core_share", "the part of a core that makes all-reduces beside computing as slow as they were"},
      {"core_wait", "what small ones lost beyond that"},
      {"residuals", "measured over predicted less 1 of the all-reduces fitted to, 10th and 90th percentile"}};
}

// The run's ranks and links with this calibration; nothing where they do not communicate.
std::optional<Scenario> scenario_of(const FittedRun& fitted, const Calibration& calibration,
                                    const HarnessCalibrationOptions& options, const ProfileStore& store) {
  const HarnessRun& run = fitted.run;
  if (run.curve.empty() || run.ranks < 2)
    return std::nullopt;
  const double unhidden = static_cast<double>(calibration.unhidden_per_byte_ps) * 1e-12;
  const RunLink link{link_of(run, fitted.figures, unhidden), options.link_latency};
  const RunMachine machine = machine_of_links(run, link, profile_of(calibration, sources_of()));
  return load_value(communication_scenario(run, machine), {.store = store, .file_name = run.file});
}

// The figures of all runs that have one, and their median: one vote a run.
class RunVotes {
 public:
  RunVotes(const FittedRuns& runs, std::optional<double> RunFigures::*figure) {
    for (const FittedRun& fitted : runs)
      if (const auto& value = fitted.figures.*figure)
        values_.push_back(*value);
    std::sort(values_.begin(), values_.end());
  }
  explicit RunVotes(std::vector<double> values) : values_(std::move(values)) {
    std::sort(values_.begin(), values_.end());
  }

  bool is_empty() const { return values_.empty(); }
  double median() const { return lockstep::median(values_); }
  bool is_torn() const { return !is_empty() && values_.back() > most_apart * values_.front(); }
  double least() const { return values_.front(); }
  double most() const { return values_.back(); }

 private:
  std::vector<double> values_;
};

class GlooFitter {
 public:
  GlooFitter(const FittedRuns& runs, const HarnessCalibrationOptions& options, const ProfileStore& store,
             std::vector<std::string>& warnings)
      : runs_(runs), options_(options), store_(store), warnings_(warnings) {}

  Calibration fit() {
    Calibration calibration;
    calibration.name = options_.name;
    ProtocolCost& tcp = calibration.protocols.emplace_back();
    tcp.name = "tcp";
    tcp.step[LinkClass::network] = fit_step();
    fit_wire(calibration);
    fit_copies(calibration);
    fit_core_time(calibration);
    fit_variation(calibration);
    fit_core_use(calibration);
    return calibration;
  }

 private:
  RunVotes votes(std::optional<double> RunFigures::*figure, const char* what, double scale,
                 const char* unit) {
    return told(RunVotes(runs_, figure), what, scale, unit);
  }

  RunVotes told(RunVotes votes, const char* what, double scale, const char* unit) {
    if (votes.is_torn())
      warnings_.push_back(
          fmt::format("the runs disagree about {}: {:.4g} to {:.4g} {}; their median is taken", what,
                      votes.least() * scale, votes.most() * scale, unit));
    return votes;
  }

  Duration fit_step() {
    const RunVotes steps = votes(&RunFigures::step_s, "what a ring step costs", 1e6, "us");
    if (steps.is_empty())
      return Duration::zero();
    const Duration whole = Duration::picoseconds(picoseconds(std::max(steps.median(), 0.0)));
    if (whole >= options_.link_latency)
      return whole - options_.link_latency;
    warnings_.push_back(
        fmt::format("a ring step takes {:.4g} us, less than the {:.4g} us the machine states for its link: "
                    "the profile cannot take time away, give the machine a lower latency",
                    whole.in_seconds() * 1e6, options_.link_latency.in_seconds() * 1e6));
    return Duration::zero();
  }

  // What the host cannot hide adds to a byte's time on the wire; where a link's rate is not known there is
  // nothing to add it to.
  void fit_wire(Calibration& calibration) {
    std::vector<double> unhidden;
    std::vector<double> parts;
    for (const auto& [run, figures] : runs_)
      if (run.goodput && figures.wire_per_byte_s) {
        const double rate = static_cast<double>(run.goodput->count());
        unhidden.push_back(*figures.wire_per_byte_s - 1 / rate);
        parts.push_back(1 / (rate * *figures.wire_per_byte_s));
      }
    calibration.efficiency[LinkClass::network] = Ratio::one();
    if (unhidden.empty())
      return;
    const double extra = RunVotes(unhidden).median();
    if (extra >= 0)
      calibration.unhidden_per_byte_ps = picoseconds(extra);
    else if (const double part = RunVotes(parts).median(); part > 1 + slack_of_a_wire)
      warnings_.push_back(fmt::format(
          "the runs moved {:.4g} times what they state of their links: the profile gives no link more "
          "than its rate, give the machine a higher one",
          part));
  }

  void fit_copies(Calibration& calibration) {
    const RunVotes tensors(runs_, &RunFigures::copy_per_tensor_s);
    if (!tensors.is_empty())
      calibration.copy_per_tensor = Duration::picoseconds(picoseconds(tensors.median()));
    const RunVotes bytes =
        votes(&RunFigures::copy_per_byte_s, "copying gradients into buckets", 1e9, "ns a byte");
    if (!bytes.is_empty())
      calibration.copy_bandwidth = Bandwidth{to_four_digits(std::llround(1 / bytes.median()))};
  }

  void fit_core_time(Calibration& calibration) {
    const RunVotes bytes =
        votes(&RunFigures::core_per_byte_s, "the core time that all-reduces take", 1e9, "ns a byte");
    if (!bytes.is_empty())
      calibration.core_time_per_byte_ps = picoseconds(bytes.median());
  }

  // Needs all other constants: the simulator is asked what comes of a share and a wait.
  void fit_core_use(Calibration& calibration) {
    std::vector<double> shares;
    std::vector<double> waits;
    for (const FittedRun& fitted : runs_)
      if (const auto use = core_use_of(fitted, calibration)) {
        shares.push_back(use->share);
        waits.push_back(use->wait_s);
      }
    if (shares.empty())
      return void(calibration = with_core_use(calibration, {.share = unlimited_share()}));
    const RunVotes share = told(RunVotes(shares), "the share of a core that all-reduces get", 1, "of it");
    const RunVotes wait = told(RunVotes(waits), "how long all-reduces wait for a core", 1e3, "ms a step");
    calibration = with_core_use(calibration, {.share = share.median(), .wait_s = wait.median()});
  }

  // Nothing where computing never held all-reduces up.
  std::optional<CoreUse> core_use_of(const FittedRun& fitted, const Calibration& calibration) const {
    const auto scenario = scenario_of(fitted, calibration, options_, store_);
    if (!fitted.figures.core_share || !scenario)
      return std::nullopt;
    std::vector<InterferencePoint> points = fitted.run.interference;
    std::erase_if(points, [](const InterferencePoint& point) { return point.collectives <= 0; });
    return lockstep::fit_core_use(InterferenceBench(*scenario), points, calibration,
                                  {.share = *fitted.figures.core_share});
  }

  void fit_variation(Calibration& calibration) {
    const RunVotes variations(runs_, &RunFigures::rank_variation);
    if (!variations.is_empty())
      calibration.rank_variation =
          Ratio::parts_per_million(to_four_digits(std::llround(std::min(variations.median(), 1.0) * 1e6)));
  }

  // All-reduces were never held up: they get at least what they took.
  double unlimited_share() {
    double taken = 0;
    for (const FittedRun& fitted : runs_) taken = std::max(taken, fitted.figures.core_taken);
    if (taken > 0)
      warnings_.push_back(fmt::format(
          "computing never held all-reduces up (they took {:.3g} of a core): core_share is not fitted",
          taken));
    return std::max(taken, Calibration{}.core_share.in_real());
  }

  const FittedRuns& runs_;
  const HarnessCalibrationOptions& options_;
  const ProfileStore& store_;
  std::vector<std::string>& warnings_;
};

// What the rounded profile says of one run's points.
class PointPredictor {
 public:
  PointPredictor(const FittedRun& fitted, const Calibration& calibration,
                 const HarnessCalibrationOptions& options, const ProfileStore& store)
      : run_(fitted.run),
        calibration_(calibration),
        scenario_(scenario_of(fitted, calibration, options, store)) {}

  void append_to(std::vector<HarnessPoint>& points) const {
    append_curve(points);
    for (const BucketCopyPoint& point : run_.copies)
      points.push_back({run_.name, "bucket copy", point.bytes, point.time.median, copy_time(point)});
    append_interference(points);
  }

 private:
  void append_curve(std::vector<HarnessPoint>& points) const {
    if (!scenario_)
      return;
    std::vector<CollectiveQuery> queries;
    for (const CurvePoint& point : run_.curve) queries.push_back({.bytes = point.bytes});
    const std::vector<CollectiveRow> rows = CollectiveBench(*scenario_).predict(queries);
    for (std::size_t i = 0; i < rows.size(); ++i)
      points.push_back({run_.name, "all_reduce", run_.curve[i].bytes, run_.curve[i].time.median,
                        rows[i].time.in_seconds()});
  }

  double copy_time(const BucketCopyPoint& point) const {
    const double moving = calibration_.copy_bandwidth
                              ? static_cast<double>(point.bytes.count()) /
                                    static_cast<double>(calibration_.copy_bandwidth->count())
                              : 0;
    return static_cast<double>(point.tensors) * calibration_.copy_per_tensor.in_seconds() + moving;
  }

  void append_interference(std::vector<HarnessPoint>& points) const {
    if (!scenario_)
      return;
    const InterferenceBench bench(*scenario_);
    for (const InterferencePoint& point : run_.interference)
      if (point.collectives > 0) {
        const InterferenceQuery query = query_of(point);
        const InterferenceRow row = bench.predict(query, calibration_);
        const double slowdown = row.compute.in_seconds() / query.compute.in_seconds();
        points.push_back({run_.name, "compute beside", point.bytes, point.compute_beside_s,
                          point.compute_alone_s * slowdown});
        points.push_back({run_.name, "all_reduce beside", point.bytes, point.collective_beside_s,
                          row.collective.in_seconds()});
      }
  }

  const HarnessRun& run_;
  const Calibration& calibration_;
  std::optional<Scenario> scenario_;
};

std::string describe_runs(std::span<const HarnessRun> runs) {
  std::set<std::string> names;
  for (const HarnessRun& run : runs) names.insert(run.date.empty() ? run.name : run.name + " " + run.date);
  return fmt::format("fitted to the microbenchmarks of {} harness run{}: {}", runs.size(),
                     runs.size() == 1 ? "" : "s", fmt::join(names, "; "));
}

FittedRange range_of(std::span<const HarnessRun> runs) {
  FittedRange range{.smallest = Bytes{INT64_MAX}, .largest = Bytes{0}, .most_ranks = 1, .most_nodes = 1};
  for (const HarnessRun& run : runs) {
    for (const CurvePoint& point : run.curve) {
      range.smallest = std::min(range.smallest, point.bytes);
      range.largest = std::max(range.largest, point.bytes);
    }
    range.most_ranks = std::max(range.most_ranks, run.ranks);
    range.most_nodes = std::max(range.most_nodes, run.ranks);
  }
  return range;
}

// Residuals of all-reduces: those of points that were fitted, as they are.
std::vector<ResidualBand> bands_of(std::span<const HarnessPoint> points) {
  std::vector<ErrorSample> samples;
  for (const HarnessPoint& point : points)
    if (point.what == "all_reduce" && point.predicted_s > 0)
      samples.push_back(
          {.size = point.bytes, .measured_over_predicted = point.measured_s / point.predicted_s});
  return residual_bands(samples);
}

std::vector<std::string> machine_classes(std::span<const HarnessRun> runs) {
  std::set<std::string> classes;
  for (const HarnessRun& run : runs) classes.insert(run.machine_class);
  return {classes.begin(), classes.end()};
}

FittedRuns fit_each(std::span<const HarnessRun> runs, std::vector<std::string>& warnings) {
  FittedRuns fitted;
  for (const HarnessRun& run : runs) {
    fitted.push_back({run, figures_of(run)});
    for (const std::string& gap : fitted.back().figures.gaps)
      warnings.push_back(fmt::format("{}: {}", run.name, gap));
    if (!run.goodput && run.ranks > 1)
      warnings.push_back(fmt::format(
          "{}: its link's goodput is not known: what all-reduces reach is taken for the link's own",
          run.name));
  }
  if (const auto classes = machine_classes(runs); classes.size() > 1)
    warnings.push_back(fmt::format("the runs are of several machines: {}", fmt::join(classes, "; ")));
  return fitted;
}

// NCCL's rings, channels and protocols are none of what is fitted here.
void check_library(std::span<const HarnessRun> runs) {
  for (const HarnessRun& run : runs)
    if (run.library == RunLibrary::nccl)
      throw ConfigError(fmt::format(
          "{}: /harness/communication: found NCCL, expected runs over Gloo: those of GPUs are fitted as "
          "benchmark logs of a GPU machine are",
          run.file));
}

struct Constant {
  const char* name;
  double value;
  const char* unit;
};

std::vector<Constant> constants_of(const Calibration& calibration) {
  const auto step = calibration.protocols.front().step.find(LinkClass::network);
  const auto wire = calibration.efficiency.find(LinkClass::network);
  std::vector<Constant> list{
      {"protocols.tcp.step.network", step->second.in_seconds() * 1e6, "us"},
      {"link_efficiency.network", wire->second.in_real(), ""},
      {"unhidden_per_byte", static_cast<double>(calibration.unhidden_per_byte_ps), "ps"},
      {"core_time_per_byte", static_cast<double>(calibration.core_time_per_byte_ps), "ps"},
      {"core_share", calibration.core_share.in_real(), ""},
      {"core_wait", calibration.core_wait.in_seconds() * 1e6, "us"},
      {"rank_variation", calibration.rank_variation.value_or(Ratio{}).in_real(), ""},
      {"gradient_copy.per_tensor", calibration.copy_per_tensor.in_seconds() * 1e6, "us"}};
  if (calibration.copy_bandwidth)
    list.push_back(
        {"gradient_copy.bandwidth", static_cast<double>(calibration.copy_bandwidth->count()) / 1e9, "GB/s"});
  return list;
}

std::string points_text(std::span<const HarnessPoint> points) {
  TextTable table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right});
  table.add_row({"run", "what", "bytes", "measured us", "predicted us", "error %"});
  for (const HarnessPoint& point : points)
    table.add_row({point.run, point.what, fmt::format("{}", point.bytes.count()),
                   fmt::format("{:.5g}", point.measured_s * 1e6),
                   fmt::format("{:.5g}", point.predicted_s * 1e6),
                   fmt::format("{:+.1f}", point.error() * 100)});
  return "Residuals\n" + table.text(2);
}

}  // namespace

HarnessCalibration calibrate_to_runs(std::span<const HarnessRun> runs,
                                     const HarnessCalibrationOptions& options, const ProfileStore& store) {
  check_library(runs);
  HarnessCalibration report;
  const FittedRuns fitted = fit_each(runs, report.warnings);
  if (std::none_of(fitted.begin(), fitted.end(),
                   [](const FittedRun& run) { return run.figures.wire_per_byte_s.has_value(); }))
    throw ConfigError(fmt::format("{}: found no all-reduce of several ranks to fit to in collective_curve",
                                  runs.front().file));
  Calibration& calibration = report.calibration;
  calibration = GlooFitter(fitted, options, store, report.warnings).fit();
  calibration.source = describe_runs(runs);
  for (const FittedRun& run : fitted)
    PointPredictor(run, calibration, options, store).append_to(report.points);
  calibration.communication_residuals = bands_of(report.points);
  calibration.fitted = range_of(runs);
  report.profile = profile_of(calibration, sources_of());
  return report;
}

std::string to_text(const HarnessCalibration& report) {
  TextTable constants({Align::left, Align::right, Align::left});
  for (const Constant& constant : constants_of(report.calibration))
    constants.add_row({constant.name, fmt::format("{:.4g}", constant.value), constant.unit});
  return fmt::format("{}: {}\n\nConstants\n{}\n{}", report.calibration.name, report.calibration.source,
                     constants.text(2), points_text(report.points));
}

ordered_json to_json(const HarnessCalibration& report) {
  ordered_json json{{"schema", "lockstep.calibration_report/1"},
                    {"machine", report.machine},
                    {"fit", report.calibration.source},
                    {"constants", ordered_json::array()},
                    {"points", ordered_json::array()}};
  for (const Constant& constant : constants_of(report.calibration))
    json["constants"].push_back(
        {{"name", constant.name}, {"value", constant.value}, {"unit", constant.unit}});
  for (const HarnessPoint& point : report.points)
    json["points"].push_back({{"run", point.run},
                              {"what", point.what},
                              {"size_bytes", point.bytes.count()},
                              {"measured_us", point.measured_s * 1e6},
                              {"predicted_us", point.predicted_s * 1e6},
                              {"error", point.error()}});
  json["warnings"] = report.warnings;
  json["profile"] = report.profile;
  return json;
}

}  // namespace lockstep
