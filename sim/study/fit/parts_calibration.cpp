#include "sim/study/fit/parts_calibration.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/load/hardware/machine_parts.h"
#include "sim/report/text_table.h"
#include "sim/study/fit/calibration_report.h"
#include "sim/study/fit/cross_validation.h"
#include "sim/study/fit/part_fit.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

bool has_part(const PartMember& member, const std::string& part) {
  return std::find(member.parts.begin(), member.parts.end(), part) != member.parts.end();
}

// What the part's file says of computing, if there is one.
Calibration computing_of(const std::string& part, const ProfileStore& store) {
  if (!store.open(ProfileKind::part, part))
    return {};
  LoadContext context{.store = store, .folder = ""};
  return open_named(part, {context, ""}, ProfileKind::part, read_part).computing;
}

std::vector<HeldOutPoint> points_with(const std::string& part, const PartFit& fit,
                                      std::span<const HeldOutPoint> points) {
  std::vector<HeldOutPoint> result;
  for (const PartMember& member : fit.members())
    if (has_part(member, part))
      std::copy_if(points.begin(), points.end(), std::back_inserter(result),
                   [&](const HeldOutPoint& point) { return point.profile == member.profile; });
  return result;
}

std::map<std::string, ordered_json> write_parts(const PartFit& fit, const ProfileStore& store) {
  const std::vector<HeldOutPoint> left_out = leave_out_machines(fit);
  std::map<std::string, ordered_json> files;
  for (auto& [name, part] : fit.parts()) {
    PartProfile written = part;
    written.residuals = bands_of(points_with(name, fit, left_out));
    written.computing = computing_of(name, store);
    files[name] = write_part(written);
  }
  return files;
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
  for (const PartMember& member : fit.members()) {
    tell(member.profile);
    result.calibrations[member.profile] = report_of(member.set, member.fit,
                                                    {.machine = member.machine,
                                                     .profile = member.profile,
                                                     .tables = member.tables,
                                                     .notes = {},
                                                     .holds_nothing_out = options.holds_no_cells_out},
                                                    fit.prior_without(member.machine, member), store)
                                              .profile;
  }
  return result;
}

}  // namespace lockstep
