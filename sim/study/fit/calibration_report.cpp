#include "sim/study/fit/calibration_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "sim/report/text_table.h"
#include "sim/study/fit/left_out_bands.h"
#include "sim/study/fit/parts_prior.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// Errors of points that were fitted are smaller than those of others by about so much.
constexpr double fit_optimism = 1.5;

std::vector<HeldOutPoint> predict_fitted(const TableSet& tables, const CommunicationFit& fit) {
  std::vector<HeldOutPoint> points;
  for (const FittedPoint& point : tables.predict(fit)) points.push_back(as_held_out(point));
  return points;
}

// One vote a cell in each class of sizes; deviations from one are `widened`.
std::vector<ErrorSample> samples_of(std::span<const HeldOutPoint> points, double widened) {
  const auto key = [](const HeldOutPoint& point) { return std::pair(point.cell, point.size_class); };
  std::map<std::pair<std::string, SizeClass>, double> count;
  for (const HeldOutPoint& point : points) ++count[key(point)];
  std::vector<ErrorSample> samples;
  for (const HeldOutPoint& point : points)
    if (point.predicted_s > 0) {
      const double ratio = point.measured.time.in_seconds() / point.predicted_s;
      samples.push_back({.size = point.measured.size,
                         .measured_over_predicted = 1 + widened * (ratio - 1),
                         .weight = 1 / count[key(point)]});
    }
  return samples;
}

void put_residuals(const CalibrationReport& report, ProfileFacts& facts) {
  if (report.held_out.empty()) {
    facts.residuals = residual_bands(samples_of(report.points, fit_optimism));
    facts.residual_source = fmt::format(
        "measured over predicted less 1, 10th and 90th percentile by size: of the points that were fitted, "
        "widened by "
        "the factor {}, since nothing was held out",
        fit_optimism);
  } else {
    facts.residuals = LeftOutBands(residuals_of_cells(report.held_out)).bands_of(facts.name);
    facts.residual_source = source_of_cell_bands;
  }
}

std::vector<std::string> describe_gaps(std::span<const MeasuredTable> tables) {
  std::set<std::int64_t> ranks;
  std::set<CollectiveOp> ops;
  std::int64_t most_nodes = 0;
  for (const MeasuredTable& table : tables) {
    ranks.insert(table.ranks());
    ops.insert(table.op);
    most_nodes = std::max(most_nodes, table.nodes);
  }
  std::vector<std::string> gaps;
  if (ranks.size() == 1)
    gaps.push_back(
        fmt::format("every table is of {} ranks: what starts a collective and what each of its steps costs "
                    "cannot be told apart, so times on other numbers of ranks rest on usual values",
                    *ranks.begin()));
  if (ops.size() == 1)
    gaps.push_back(
        fmt::format("every table is of {}: {} cannot be known from it", collective_op_name(*ops.begin()),
                    is_point_to_point(*ops.begin()) ? "what rings and trees cost"
                                                    : "what all_to_all, send_recv and others cost"));
  if (most_nodes == 1)
    gaps.emplace_back(
        "no table is of several nodes: the profile says nothing of the network, which is then taken as a "
        "perfect wire");
  if (std::ranges::none_of(tables, is_inside_a_node))
    gaps.emplace_back(
        "no table is of one node: what its GPUs reach of each other stays near what other machines of these "
        "parts have, and what is slow is laid on the network");
  return gaps;
}

// Tables of which more than a tenth of the sizes stay this far from what was fitted to them.
std::vector<std::string> describe_misses(std::span<const HeldOutPoint> points) {
  constexpr double far = 0.3;
  struct Table {
    std::size_t sizes = 0;
    std::size_t missed = 0;
    const HeldOutPoint* worst = nullptr;
  };
  const auto miss = [](const HeldOutPoint& point) { return std::abs(std::log1p(point.error())); };
  std::map<std::string, Table> tables;
  for (const HeldOutPoint& point : points) {
    Table& table = tables[point.table];
    ++table.sizes;
    table.missed += std::abs(point.error()) > far ? 1 : 0;
    if (table.worst == nullptr || miss(point) > miss(*table.worst))
      table.worst = &point;
  }
  std::vector<std::string> misses;
  for (const auto& [name, table] : tables)
    if (10 * table.missed > table.sizes)
      misses.push_back(fmt::format(
          "{} of {} sizes of {} are missed by more than {:.0f} %, {} bytes by {:+.0f} %: so are predictions with this "
          "profile",
          table.missed, table.sizes, name, far * 100, table.worst->measured.size.count(),
          table.worst->error() * 100));
  return misses;
}

double microseconds(Duration duration) {
  return static_cast<double>(duration.picoseconds()) / 1e6;
}

// As nccl-tests prints times: fewer decimals the longer.
std::string time_text(double microseconds) {
  return microseconds >= 10'000 ? fmt::format("{:.0f}", microseconds)
                                : fmt::format("{:.{}f}", microseconds, microseconds >= 100 ? 1 : 2);
}

std::vector<CalibrationConstant> constants_of(const CalibrationReport& report) {
  std::vector<CalibrationConstant> constants = calibration_constants(report.calibration);
  constants.insert(constants.end(), report.computing.begin(), report.computing.end());
  return constants;
}

std::string constants_text(const CalibrationReport& report) {
  TextTable table({Align::left, Align::right, Align::left});
  for (const CalibrationConstant& constant : constants_of(report))
    table.add_row({constant.name, fmt::format("{:.4g}", constant.value), constant.unit});
  return "Constants\n" + table.text(2);
}

std::string points_text(std::span<const HeldOutPoint> points) {
  TextTable table(
      {Align::left, Align::right, Align::right, Align::right, Align::right, Align::left, Align::left});
  table.add_row({"table", "bytes", "measured us", "predicted us", "error %", "algorithm", "protocol"});
  for (const HeldOutPoint& point : points)
    table.add_row({point.table, fmt::format("{}", point.measured.size.count()),
                   time_text(microseconds(point.measured.time)), time_text(point.predicted_s * 1e6),
                   fmt::format("{:+.1f}", point.error() * 100), point.algorithm, point.protocol});
  return "Residuals\n" + table.text(2);
}

std::string computing_text(std::span<const ComputingPoint> points) {
  if (points.empty())
    return "";
  TextTable table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right});
  table.add_row({"run", "what", "bytes", "measured us", "predicted us", "error %"});
  for (const ComputingPoint& point : points)
    table.add_row({point.run, point.what, fmt::format("{}", point.bytes.count()),
                   time_text(point.measured_s * 1e6), time_text(point.predicted_s * 1e6),
                   fmt::format("{:+.1f}", point.error() * 100)});
  return table.text(2) + "\n";
}

std::string percent(const ErrorQuantiles& errors, double error) {
  return errors.points == 0 ? "-" : fmt::format("{:.1f} %", error * 100);
}

std::string errors_text(const CalibrationReport& report) {
  TextTable table({Align::left, Align::right, Align::right, Align::right, Align::right, Align::right});
  table.add_row({"sizes", "points", "fitted: median", "p90", "left out: median", "p90"});
  for (const SizeClass of : size_classes) {
    const ErrorQuantiles fitted = summarise_errors(report.points, of);
    const ErrorQuantiles held_out = summarise_errors(report.held_out, of);
    table.add_row({size_class_name(of), fmt::format("{}", fitted.points), percent(fitted, fitted.median),
                   percent(fitted, fitted.p90), percent(held_out, held_out.median),
                   percent(held_out, held_out.p90)});
  }
  return "Absolute errors, one vote a cell; left out: each cell predicted by a fit to the others\n" +
         table.text(2) + (report.held_out.empty() ? "  a single cell: nothing could be left out\n" : "");
}

ordered_json to_json(const HeldOutPoint& point) {
  return {{"table", point.table},
          {"cell", point.cell},
          {"size_bytes", point.measured.size.count()},
          {"measured_us", microseconds(point.measured.time)},
          {"predicted_us", point.predicted_s * 1e6},
          {"error", point.error()},
          {"algorithm", point.algorithm},
          {"protocol", point.protocol}};
}

ordered_json to_json(const ComputingPoint& point) {
  return {{"run", point.run},
          {"what", point.what},
          {"size_bytes", point.bytes.count()},
          {"measured_us", point.measured_s * 1e6},
          {"predicted_us", point.predicted_s * 1e6},
          {"error", point.error()}};
}

ordered_json points_json(std::span<const HeldOutPoint> points) {
  ordered_json json = ordered_json::array();
  for (const HeldOutPoint& point : points) json.push_back(to_json(point));
  return json;
}

ordered_json constants_json(const CalibrationReport& report) {
  ordered_json json = ordered_json::array();
  for (const CalibrationConstant& constant : constants_of(report))
    json.push_back({{"name", constant.name}, {"value", constant.value}, {"unit", constant.unit}});
  return json;
}

ordered_json errors_json(std::span<const HeldOutPoint> points) {
  ordered_json json = ordered_json::array();
  for (const SizeClass of : size_classes) {
    const ErrorQuantiles errors = summarise_errors(points, of);
    if (errors.points > 0)
      json.push_back({{"sizes", size_class_name(of)},
                      {"cells", errors.cells},
                      {"points", errors.points},
                      {"median", errors.median},
                      {"p90", errors.p90}});
  }
  return json;
}

}  // namespace

CalibrationReport calibrate(const CalibrationInputs& inputs, const ProfileStore& store) {
  const TableSet tables(inputs.tables, store);
  const ConstantsPrior prior = prior_of_parts(inputs.tables, store);
  return report_of(tables, tables.fit(prior), inputs, prior, store);
}

CalibrationReport report_of(const TableSet& tables, CommunicationFit fit, const CalibrationInputs& inputs,
                            const ConstantsPrior& prior, const ProfileStore& store) {
  fit.calibration = rounded_communication(std::move(fit.calibration));
  ProfileFacts facts{.name = inputs.profile, .tables = inputs.tables};
  CalibrationReport report{.machine = inputs.machine,
                           .tables = describe_tables(inputs.tables),
                           .calibration = {},
                           .points = predict_fitted(tables, fit),
                           .held_out = inputs.holds_nothing_out
                                           ? std::vector<HeldOutPoint>{}
                                           : leave_out_cells(inputs.tables, prior, fit, store),
                           .profile = {},
                           .warnings = describe_gaps(inputs.tables)};
  for (std::string& miss : describe_misses(report.points)) report.warnings.push_back(std::move(miss));
  put_residuals(report, facts);
  report.calibration = calibration_of_profile(fit, facts);
  report.profile = write_profile(fit, facts);
  return report;
}

std::string to_text(const CalibrationReport& report) {
  return fmt::format("{}: {}\n\n{}\n{}\n{}{}", report.calibration.name, report.tables, constants_text(report),
                     points_text(report.points), computing_text(report.computing_points),
                     errors_text(report));
}

ordered_json to_json(const CalibrationReport& report) {
  ordered_json json{{"schema", "lockstep.calibration_report/1"},
                    {"machine", report.machine},
                    {"fit", report.tables},
                    {"constants", constants_json(report)},
                    {"points", points_json(report.points)},
                    {"fit_error", errors_json(report.points)},
                    {"held_out_error", errors_json(report.held_out)},
                    {"held_out_points", points_json(report.held_out)},
                    {"warnings", report.warnings},
                    {"profile", report.profile}};
  for (const ComputingPoint& point : report.computing_points)
    json["computing_points"].push_back(to_json(point));
  return json;
}

}  // namespace lockstep
