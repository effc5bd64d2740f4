#include "sim/study/fit/parts_calibration.h"

#include <fmt/format.h>

#include <set>

#include "sim/load/hardware/machine_parts.h"
#include "sim/load/hardware/write_calibration.h"
#include "sim/report/text_table.h"
#include "sim/study/fit/calibration_report.h"
#include "sim/study/fit/cross_validation.h"
#include "sim/study/fit/left_out_bands.h"
#include "sim/study/fit/part_fit.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// What the part's file says of computing, if there is one.
Calibration computing_of(const std::string& part, const ProfileStore& store) {
  if (!store.open(ProfileKind::part, part))
    return {};
  LoadContext context{.store = store, .folder = ""};
  return open_named(part, {context, ""}, ProfileKind::part, read_part).computing;
}

// Machines that share a part are kin.
std::vector<LeftOutResidual> residuals_of_machines(const PartFit& fit) {
  const std::vector<HeldOutPoint> points = leave_out_machines(fit);
  std::vector<LeftOutResidual> residuals = residuals_of(points);
  std::map<std::string, const PartMember*> members;
  for (const PartMember& member : fit.members()) members[member.profile] = &member;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const PartMember& member = *members.at(points[i].profile);
    residuals[i].unit = member.machine;
    residuals[i].kin.assign(member.parts.begin(), member.parts.end());
  }
  return residuals;
}

std::map<std::string, ordered_json> write_parts(const PartFit& fit, const ProfileStore& store) {
  const LeftOutBands left_out(residuals_of_machines(fit));
  std::map<std::string, ordered_json> files;
  for (auto& [name, part] : fit.parts()) {
    PartProfile written = part;
    written.residuals = left_out.bands_of(name);
    written.computing = computing_of(name, store);
    files[name] = write_part(written);
  }
  return files;
}

// With what other profiles' cells say, where few of its own were left out.
void put_bands_of_cells(std::span<const HeldOutPoint> points, std::map<std::string, ordered_json>& profiles) {
  const LeftOutBands bands(residuals_of_cells(points));
  std::set<std::string> predicted;
  for (const HeldOutPoint& point : points) predicted.insert(point.profile);
  for (const std::string& profile : predicted)
    profiles.at(profile)["residuals"]["communication"] = write_residual_bands(bands.bands_of(profile));
}

std::string table_of(const PartFit& fit) {
  TextTable table({Align::left, Align::left, Align::right, Align::right});
  table.add_row({"part", "of", "machines", "tables"});
  for (const auto& [name, part] : fit.parts())
    table.add_row({name, std::string(name_of(part.part)), fmt::format("{}", part.machines),
                   fmt::format("{}", part.tables)});
  return table.text(0);
}

}  // namespace

PartsCalibration calibrate_parts(std::span<const MeasuredTable> tables, const PartsOptions& options,
                                 const ProfileStore& store) {
  const auto tell = [&](const std::string& what) {
    if (options.tell)
      options.tell(what);
  };
  PartFit fit(tables, store);
  fit.solve(rounds_of_parts, [&](int round) { tell(fmt::format("round {} of {}", round, rounds_of_parts)); });
  PartsCalibration result{.parts = write_parts(fit, store), .calibrations = {}, .text = table_of(fit)};
  std::vector<HeldOutPoint> left_out;
  for (const PartMember& member : fit.members()) {
    tell(member.profile);
    const CalibrationReport report = report_of(member.set, member.fit,
                                               {.machine = member.machine,
                                                .profile = member.profile,
                                                .tables = member.tables,
                                                .notes = {},
                                                .holds_nothing_out = options.holds_no_cells_out},
                                               fit.prior_without(member.machine, member), store);
    left_out.insert(left_out.end(), report.held_out.begin(), report.held_out.end());
    result.calibrations[member.profile] = report.profile;
  }
  put_bands_of_cells(left_out, result.calibrations);
  return result;
}

}  // namespace lockstep
