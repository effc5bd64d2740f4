#include "sim/study/validation/collective_validation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "sim/base/weighted_quantile.h"
#include "sim/load/hardware/machine_parts.h"
#include "sim/study/bench/collective_table.h"
#include "sim/study/fit/left_out_bands.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::array all_classes{SizeClass::small, SizeClass::middle, SizeClass::large};

// Says where a table asks for a machine that is not there, or for more GPUs than it has.
class MachineCheck {
 public:
  explicit MachineCheck(const ProfileStore& store) : store_(store) {}

  void check(const MeasuredTable& table, const std::string& index) {
    const std::string place = fmt::format("{}: {}", index, table.id);
    if (!store_.open(ProfileKind::machine, table.machine))
      problems_.push_back(fmt::format("{}: found no machine \"{}\"; {}", place, table.machine,
                                      describe_choices(table.machine, store_.names(ProfileKind::machine))));
    else if (const std::int64_t gpus = gpus_of(table.machine); table.gpus_per_node > gpus)
      problems_.push_back(fmt::format("{}: found {} GPUs on each node, and a {} has {}", place,
                                      table.gpus_per_node, table.machine, gpus));
  }
  void throw_if_problems() const {
    if (!problems_.empty())
      throw ConfigError(problems_);
  }

 private:
  std::int64_t gpus_of(const std::string& machine) {
    const auto [known, is_new] = gpus_.try_emplace(machine, 0);
    if (is_new)
      known->second = load_collective_setting({.machine = machine}, store_).cluster.machine.gpus;
    return known->second;
  }

  const ProfileStore& store_;
  std::map<std::string, std::int64_t> gpus_;
  std::vector<std::string> problems_;
};

void check_profiles(const std::vector<std::string>& asked, const std::set<std::string>& found) {
  const std::vector<std::string> valid(found.begin(), found.end());
  for (const std::string& profile : asked)
    if (!found.contains(profile))
      throw ConfigError(
          fmt::format("--profile: found no table of \"{}\"; {}", profile, describe_choices(profile, valid)));
}

// Of all profiles: what is left out of one is predicted with what the others say of its parts.
std::vector<MeasuredTable> healthy_tables(const CollectiveValidationOptions& options,
                                          const ProfileStore& store) {
  std::vector<MeasuredTable> tables;
  std::set<std::string> profiles;
  MachineCheck machines(store);
  for (const std::string& index : options.indexes)
    for (MeasuredTable& table : read_measured_tables(index)) {
      profiles.insert(table.profile);
      if (!table.healthy)
        continue;
      machines.check(table, index);
      tables.push_back(std::move(table));
    }
  machines.throw_if_problems();
  check_profiles(options.profiles, profiles);
  return tables;
}

std::vector<MeasuredTable> asked_tables(const std::vector<MeasuredTable>& tables,
                                        const std::vector<std::string>& profiles) {
  if (profiles.empty())
    return tables;
  std::vector<MeasuredTable> asked;
  std::copy_if(tables.begin(), tables.end(), std::back_inserter(asked), [&](const MeasuredTable& table) {
    return std::find(profiles.begin(), profiles.end(), table.profile) != profiles.end();
  });
  return asked;
}

std::vector<HeldOutPoint> predict_as_shipped(const std::vector<MeasuredTable>& tables,
                                             const ProfileStore& store) {
  std::vector<HeldOutPoint> points;
  for (const auto& [profile, of_profile] : tables_by_profile(tables)) {
    const bool is_calibrated = store.open(ProfileKind::calibration, profile).has_value();
    const std::string& machine = of_profile.front().machine;
    if (!is_calibrated && profile != machine)
      continue;
    const Scenario scenario =
        load_collective_setting({.machine = machine, .calibration = is_calibrated ? profile : ""}, store);
    const TableSet set(of_profile, store);
    CommunicationFit shipped{.calibration = scenario.cluster.calibration};
    for (const MeasuredTable& table : of_profile)
      shipped.release[table.group] = scenario.communication.library_version;
    for (const FittedPoint& point : set.predict(shipped)) points.push_back(as_held_out(point));
  }
  return points;
}

std::vector<HeldOutPoint> points_of(std::span<const HeldOutPoint> points, const std::string& profile) {
  std::vector<HeldOutPoint> result;
  std::copy_if(points.begin(), points.end(), std::back_inserter(result),
               [&](const HeldOutPoint& point) { return point.profile == profile; });
  return result;
}

std::set<std::string> profiles_in(std::span<const HeldOutPoint> points) {
  std::set<std::string> profiles;
  for (const HeldOutPoint& point : points) profiles.insert(point.profile);
  return profiles;
}

std::vector<std::string> profiles_without_points(const CollectiveValidation& validation) {
  const std::set<std::string> predicted = profiles_in(validation.points);
  std::set<std::string> missing;
  for (const MeasuredTable& table : validation.tables)
    if (!predicted.contains(table.profile))
      missing.insert(table.profile);
  return {missing.begin(), missing.end()};
}

std::string why_not_predicted(const std::optional<LeaveOut>& left_out) {
  if (!left_out)
    return "no calibration of this name is shipped";
  switch (*left_out) {
    case LeaveOut::cell:
      return "one cell only, nothing to hold it out against";
    case LeaveOut::group:
      return "one group only, nothing to hold it out against";
    case LeaveOut::scale:
      return "not measured both above two nodes and below";
    case LeaveOut::machine:
      return "no healthy table";
  }
  return "";
}

std::vector<std::string> describe_not_predicted(const CollectiveValidation& validation) {
  std::vector<std::string> sentences;
  for (const std::string& profile : validation.not_predicted)
    sentences.push_back(fmt::format("{}: {}", profile, why_not_predicted(validation.left_out)));
  return sentences;
}

std::string percent(double ratio) {
  return fmt::format("{:.1f}", ratio * 100);
}

std::string headline(const CollectiveValidation& validation) {
  if (!validation.left_out)
    return "collectives, shipped profiles on the tables they were fitted to";
  switch (*validation.left_out) {
    case LeaveOut::cell:
      return "collectives, held out: all tables of one (group, collective, rank count) at a time";
    case LeaveOut::group:
      return "collectives, held out: all tables of one group at a time";
    case LeaveOut::scale:
      return "collectives, held out: more than two nodes, fitted on one and two";
    case LeaveOut::machine:
      return "collectives, held out: all tables of one machine at a time, predicted from its parts";
  }
  return "";
}

struct Line {
  std::string name;
  SizeClass size_class;
  ErrorQuantiles ours, line, tuner;
  BandCoverage band;
};

Line line_of(const std::string& name, std::span<const HeldOutPoint> points, SizeClass size_class) {
  return {.name = name,
          .size_class = size_class,
          .ours = summarise_errors(points, size_class),
          .line = summarise_errors(points, size_class, Predictor::line),
          .tuner = summarise_errors(points, size_class, Predictor::tuner),
          .band = band_coverage(points, size_class)};
}

std::vector<Line> lines_of(const CollectiveValidation& validation) {
  std::vector<Line> lines;
  for (const SizeClass size_class : all_classes)
    lines.push_back(line_of("all machines", validation.points, size_class));
  for (const std::string& profile : profiles_in(validation.points)) {
    const std::vector<HeldOutPoint> of_profile = points_of(validation.points, profile);
    for (const SizeClass size_class : all_classes)
      if (const Line line = line_of(profile, of_profile, size_class); line.ours.points > 0)
        lines.push_back(line);
  }
  return lines;
}

// Null: that nothing was predicted so.
ordered_json to_json(const ErrorQuantiles& errors) {
  if (errors.points == 0)
    return {{"median", nullptr}, {"p90", nullptr}};
  return {{"median", errors.median}, {"p90", errors.p90}};
}

bool has_band(const BandCoverage& band) {
  return band.half_width > 0;
}

using TablesById = std::map<std::pair<std::string, std::string>, const MeasuredTable*>;  // by profile and id

TablesById by_id(const std::vector<MeasuredTable>& tables) {
  TablesById result;
  for (const MeasuredTable& table : tables) result[{table.profile, table.id}] = &table;
  return result;
}

ordered_json to_json(const MeasuredTable& table) {
  return {{"table", table.id},
          {"profile", table.profile},
          {"group", table.group},
          {"collective", collective_op_name(table.op)},
          {"nodes", table.nodes},
          {"ranks", table.ranks()},
          {"algorithm", table.algorithm},
          {"protocol", table.protocol},
          {"rows", table.rows.size()}};
}

double busbw_gbs(const MeasuredTable& table, Bytes size, double seconds) {
  const BusFactor factor = bus_factor(table.op, table.ranks());
  return static_cast<double>(size.count()) / seconds / 1e9 * static_cast<double>(factor.numerator) /
         static_cast<double>(factor.denominator);
}

// What is known of a machine by its parts, of a cell or group by its profile.
std::vector<std::string> parts_of_table(const MeasuredTable& table, const ProfileStore& store) {
  const ClusterSpec cluster = load_collective_setting({.machine = table.machine}, store).cluster;
  std::vector<std::string> parts;
  for (const std::vector<std::string>& names :
       parts_of(cluster.machine, cluster.gpu.compute_capability, table.network))
    parts.push_back(names.front());
  return parts;
}

std::vector<LeftOutResidual> residuals_with_parts(const CollectiveValidation& validation,
                                                  const ProfileStore& store) {
  std::vector<LeftOutResidual> residuals = residuals_of(validation.points);
  const TablesById tables = by_id(validation.tables);
  std::map<std::string, std::vector<std::string>> parts;  // by profile
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const HeldOutPoint& point = validation.points[i];
    const MeasuredTable& table = *tables.at({point.profile, point.table});
    const auto [known, is_new] = parts.try_emplace(point.profile);
    if (is_new)
      known->second = parts_of_table(table, store);
    residuals[i].unit = validation.left_out == LeaveOut::machine ? table.machine : point.profile;
    residuals[i].kin = known->second;
  }
  return residuals;
}

std::vector<LeftOutResidual> residuals_with_profile(const CollectiveValidation& validation) {
  std::vector<LeftOutResidual> residuals = residuals_of_cells(validation.points);
  const TablesById tables = by_id(validation.tables);
  for (std::size_t i = 0; i < residuals.size() && validation.left_out == LeaveOut::group; ++i) {
    const HeldOutPoint& point = validation.points[i];
    residuals[i].unit = point.profile + ": " + tables.at({point.profile, point.table})->group;
  }
  return residuals;
}

void put_bands(CollectiveValidation& validation, const ProfileStore& store) {
  const bool is_of_parts = validation.left_out == LeaveOut::machine || validation.left_out == LeaveOut::scale;
  const LeftOutBands bands(is_of_parts ? residuals_with_parts(validation, store)
                                       : residuals_with_profile(validation));
  const std::vector<std::optional<ResidualInterval>> intervals = bands.intervals();
  for (std::size_t i = 0; i < intervals.size(); ++i) validation.points[i].band = intervals[i];
}

bool is_alike(const StatedChoice& stated, const HeldOutPoint& point) {
  return stated.algorithm == point.algorithm &&
         (stated.protocol.empty() || stated.protocol == point.protocol);
}

std::string describe_choices_made(const CollectiveValidation& validation) {
  const ChoiceShare share = share_of_choices(validation);
  return share.stated == 0
             ? ""
             : fmt::format("# choices: of {} sizes in {} tables that say what ran, {} are chosen alike\n",
                           share.stated, share.tables, share.alike);
}

ordered_json choices_json(const CollectiveValidation& validation) {
  const ChoiceShare share = share_of_choices(validation);
  ordered_json json{{"stated", share.stated}, {"alike", share.alike}, {"tables", share.tables}};
  json["different"] = ordered_json::array();
  const TablesById tables = by_id(validation.tables);
  for (const HeldOutPoint& point : validation.points) {
    const StatedChoice* stated = tables.at({point.profile, point.table})->chosen_for(point.measured.size);
    if (stated != nullptr && !is_alike(*stated, point))
      json["different"].push_back({{"table", point.table},
                                   {"size_bytes", point.measured.size.count()},
                                   {"stated", {stated->algorithm, stated->protocol}},
                                   {"here", {point.algorithm, point.protocol}}});
  }
  return json;
}

ordered_json to_json(const HeldOutPoint& point, const MeasuredTable& table) {
  const Bytes size = point.measured.size;
  const double measured_s = point.measured.time.in_seconds();
  return {{"profile", point.profile},
          {"cell", point.cell},
          {"table", point.table},
          {"collective", collective_op_name(table.op)},
          {"size_bytes", size.count()},
          {"measured_us", measured_s * 1e6},
          {"predicted_us", point.predicted_s * 1e6},
          {"measured_busbw_gbs", busbw_gbs(table, size, measured_s)},
          {"predicted_busbw_gbs", busbw_gbs(table, size, point.predicted_s)},
          {"error", point.error()},
          {"algorithm", point.algorithm},
          {"protocol", point.protocol}};
}

}  // namespace

CollectiveValidation validate_collectives(const CollectiveValidationOptions& options,
                                          const ProfileStore& store) {
  const std::vector<MeasuredTable> tables = healthy_tables(options, store);
  CollectiveValidation validation{.left_out = options.leave_out,
                                  .tables = asked_tables(tables, options.profiles),
                                  .points = {},
                                  .not_predicted = {}};
  validation.points = options.leave_out ? cross_validate(tables, *options.leave_out, store, options.profiles)
                                        : predict_as_shipped(validation.tables, store);
  validation.not_predicted = profiles_without_points(validation);
  if (validation.points.empty()) {
    std::vector<std::string> problems{
        fmt::format("{}: found no {}", fmt::join(options.indexes, ", "),
                    validation.tables.empty() ? "healthy table" : "point to predict")};
    for (std::string& sentence : describe_not_predicted(validation)) problems.push_back(std::move(sentence));
    throw ConfigError(problems);
  }
  put_bands(validation, store);
  return validation;
}

BandCoverage band_coverage(std::span<const HeldOutPoint> points, SizeClass size_class) {
  std::map<std::string, std::vector<const HeldOutPoint*>> by_cell;
  for (const HeldOutPoint& point : points)
    if (point.size_class == size_class && point.band)
      by_cell[point.profile + ": " + point.cell].push_back(&point);
  BandCoverage coverage;
  std::vector<std::pair<double, double>> widths, errors;
  for (const auto& [cell, inside] : by_cell)
    for (const HeldOutPoint* point : inside) {
      const double weight = 1 / static_cast<double>(inside.size());
      const bool is_held = point->band->holds(1 / (1 + point->error()));
      coverage.share += is_held ? weight / static_cast<double>(by_cell.size()) : 0;
      widths.emplace_back((point->band->high - point->band->low) / 2, weight);
      errors.emplace_back(std::abs(point->error()), weight);
    }
  coverage.half_width = weighted_quantile(widths, 0.5);
  coverage.median_error = weighted_quantile(errors, 0.5);
  return coverage;
}

ChoiceShare share_of_choices(const CollectiveValidation& validation) {
  const TablesById tables = by_id(validation.tables);
  ChoiceShare share;
  std::set<const MeasuredTable*> stating;
  for (const HeldOutPoint& point : validation.points) {
    const MeasuredTable* table = tables.at({point.profile, point.table});
    if (const StatedChoice* stated = table->chosen_for(point.measured.size)) {
      ++share.stated;
      share.alike += is_alike(*stated, point) ? 1 : 0;
      stating.insert(table);
    }
  }
  share.tables = stating.size();
  return share;
}

ordered_json to_json(const CollectiveValidation& validation) {
  ordered_json json{{"schema", "lockstep.collective_validation/1"}, {"what", headline(validation)}};
  json["summary"] = ordered_json::array();
  for (const Line& line : lines_of(validation))
    json["summary"].push_back(
        {{"profile", line.name},
         {"sizes", size_class_name(line.size_class)},
         {"cells", line.ours.cells},
         {"points", line.ours.points},
         {"lockstep", to_json(line.ours)},
         {"one_line", to_json(line.line)},
         {"nccl_model", to_json(line.tuner)},
         {"band_holds", has_band(line.band) ? ordered_json(line.band.share) : nullptr},
         {"band_half_width", has_band(line.band) ? ordered_json(line.band.half_width) : nullptr}});
  json["choices"] = choices_json(validation);
  json["not_predicted"] = describe_not_predicted(validation);
  json["tables"] = ordered_json::array();
  for (const MeasuredTable& table : validation.tables) json["tables"].push_back(to_json(table));
  const TablesById tables = by_id(validation.tables);
  json["points"] = ordered_json::array();
  for (const HeldOutPoint& point : validation.points)
    json["points"].push_back(to_json(point, *tables.at({point.profile, point.table})));
  return json;
}

std::string to_text(const CollectiveValidation& validation) {
  constexpr std::string_view row = "{:<24} {:<16} {:>5} {:>6} {:>14} {:>14} {:>14} {:>10}\n";
  std::string text = "# " + headline(validation) + "\n";
  text += "# absolute errors in percent, median / 90th percentile, one vote a cell\n";
  text += fmt::format(row, "profile", "sizes", "cells", "points", "lockstep", "one line", "NCCL's model",
                      "in band");
  for (const Line& line : lines_of(validation)) {
    const auto pair = [](const ErrorQuantiles& errors) {
      return errors.points == 0 ? std::string("-") : percent(errors.median) + " / " + percent(errors.p90);
    };
    text += fmt::format(row, line.name, size_class_name(line.size_class), line.ours.cells, line.ours.points,
                        pair(line.ours), pair(line.line), pair(line.tuner),
                        has_band(line.band) ? percent(line.band.share) : "-");
  }
  text += describe_choices_made(validation);
  for (const std::string& sentence : describe_not_predicted(validation))
    text += fmt::format("# not predicted: {}\n", sentence);
  return text;
}

std::string to_markdown(const CollectiveValidation& validation) {
  std::string text =
      "| sizes | cells | points | Lockstep: median, p90 | one line a machine | NCCL's model as a clock | in "
      "the "
      "80 % band |\n|---|--:|--:|--:|--:|--:|--:|\n";
  const auto pair = [](const ErrorQuantiles& errors) {
    return errors.points == 0 ? std::string("-")
                              : percent(errors.median) + " %, " + percent(errors.p90) + " %";
  };
  for (const SizeClass size_class : all_classes) {
    const Line line = line_of("all machines", validation.points, size_class);
    if (line.ours.points > 0)
      text +=
          fmt::format("| {} | {} | {} | **{} %**, {} % | {} | {} | {} % |\n", size_class_name(size_class),
                      line.ours.cells, line.ours.points, percent(line.ours.median), percent(line.ours.p90),
                      pair(line.line), pair(line.tuner), percent(line.band.share));
  }
  return text;
}

}  // namespace lockstep
