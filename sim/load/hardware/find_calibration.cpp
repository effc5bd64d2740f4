#include "sim/load/hardware/find_calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/quantity_text.h"
#include "sim/load/hardware/machine_parts.h"
#include "sim/load/hardware/read_calibration.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/load/reading/lenders.h"
#include "sim/load/reading/spelling.h"
#include "sim/network/usual_efficiency.h"

namespace lockstep {
namespace {

// A library that fills less than this of a NIC waits for something else.
constexpr Ratio wire_limited = Ratio::percent(50);

// Nothing is known: the wire as it is, and no cost beyond it.
Calibration neutral_calibration() {
  Calibration calibration;
  calibration.name = "neutral";
  calibration.source = "nothing was measured: the library gets all of every wire and each step is free";
  calibration.protocols.emplace_back().name = "simple";
  return calibration;
}

// None for a machine that was never measured, or whose files are broken: that is the problem of who names it.
std::optional<Lender> read_lender(const std::string& name, const ProfileStore& store) {
  LoadContext aside{.store = store, .folder = ""};
  const Place place{aside, ""};
  MachineReading reading = open_named(name, place, ProfileKind::machine, read_machine);
  if (!reading.calibration && store.has(ProfileKind::calibration, name))
    reading.calibration = open_named(name, place, ProfileKind::calibration, read_calibration);
  if (!aside.problems.empty() || !reading.calibration)
    return std::nullopt;
  return Lender{.machine = std::move(reading.machine),
                .compute_capability = reading.gpu.compute_capability,
                .calibration = *std::move(reading.calibration)};
}

// It lives as long as the store.
const std::optional<Lender>& find_lender(const std::string& name, const ProfileStore& store) {
  Lenders& lenders = store.lenders();
  if (lenders.find(name) == nullptr)
    lenders.keep(name, read_lender(name, store), 1);
  return *lenders.find(name);
}

// Of the fastest NIC; zero: there is none.
Bandwidth nic_bandwidth(const MachineSpec& machine) {
  Bandwidth most{0};
  for (const NicSpec& nic : machine.nics) most = std::max(most, nic.link.bandwidth);
  return most;
}

// A library that fills little of a NIC waits for its host, which gives no more to a faster NIC; of a slower one it gets
// the usual share, if that is less.
void keep_host_rate(const MachineSpec& here, const MachineSpec& there, Calibration& calibration,
                    std::vector<std::string>& remarks) {
  const auto found = calibration.efficiency.find(LinkClass::network);
  const Bandwidth wire_here = nic_bandwidth(here);
  const Bandwidth wire_there = nic_bandwidth(there);
  if (found == calibration.efficiency.end() || found->second >= wire_limited || wire_here == wire_there ||
      wire_here == Bandwidth{0} || wire_there == Bandwidth{0})
    return;
  remarks.push_back(fmt::format("the host's {} over network links is kept as a rate",
                                format_bandwidth(scaled_down(wire_there, found->second))));
  const auto share = Ratio::parts_per_million(arithmetic::product_divided_down(
      wire_there.count(), found->second.parts_per_million(), wire_here.count()));
  found->second = std::clamp(share, Ratio::smallest(), usual_efficiency(LinkClass::network));
}

std::string in_brackets(const std::vector<std::string>& remarks) {
  return remarks.empty() ? "" : fmt::format(" ({})", fmt::join(remarks, "; "));
}

// What a scenario put into a measured machine has its own constants; the rest keeps those that were measured.
void put_other_parts(const CalibrationSearch& search, const Lender& measured, const Place& place,
                     Calibration& calibration, std::vector<std::string>& remarks) {
  const PartNames here = parts_of(search.machine, search.compute_capability);
  const PartNames there = parts_of(measured.machine, measured.compute_capability);
  if (here == there)
    return;
  const MachineParts parts = open_parts(search.machine, search.compute_capability, place);
  const std::vector<LinkClass> in_node = classes_in_node(search.machine);
  for (const MachinePart part : machine_parts) {
    const auto at = static_cast<std::size_t>(part);
    if (here[at].front() == there[at].front())
      continue;
    remarks.push_back(fmt::format("{} instead of {}", here[at].front(), there[at].front()));
    for (const CommunicationConstant* constant : constants_of(search.machine))
      if (constant->part == part)
        constant->put(calibration, in_node, value_of(parts.profiles[at], *constant));
  }
  remarks.insert(remarks.end(), parts.remarks.begin(), parts.remarks.end());
  widen(calibration.communication_residuals);
}

// The machine's own, though a scenario may have put other parts into it.
std::optional<Calibration> find_own_calibration(const CalibrationSearch& search, const Place& place) {
  LoadContext& context = place.context;
  const std::string& name = search.machine.name;
  if (search.machine.library != search.library || !context.store.has(ProfileKind::calibration, name))
    return std::nullopt;
  const std::optional<Lender>& measured = find_lender(name, context.store);
  if (!measured)
    return open_named(name, place, ProfileKind::calibration, read_calibration);
  Calibration calibration = measured->calibration;
  std::vector<std::string> remarks;
  if (search.library != LibraryKind::gloo)
    put_other_parts(search, *measured, place, calibration, remarks);
  keep_host_rate(search.machine, measured->machine, calibration, remarks);
  if (!remarks.empty())
    context.warnings.push_back(
        fmt::format("machine {} is not what its calibration was fitted to{}", name, in_brackets(remarks)));
  return calibration;
}

// By octaves between the NICs; of equals, the first by name. Null: there is none.
const Lender* find_gloo_machine(const MachineSpec& machine, const ProfileStore& store) {
  const auto distance = [&](const Lender& lender) {
    return std::abs(std::log2(static_cast<double>(nic_bandwidth(machine).count() + 1) /
                              static_cast<double>(nic_bandwidth(lender.machine).count() + 1)));
  };
  const Lender* nearest = nullptr;
  for (const std::string& name : store.names(ProfileKind::machine)) {
    const std::optional<Lender>& lender = find_lender(name, store);
    if (lender && lender->machine.library == LibraryKind::gloo &&
        (nearest == nullptr || distance(*lender) < distance(*nearest)))
      nearest = &*lender;
  }
  return nearest;
}

Calibration borrow_of_gloo(const CalibrationSearch& search, const Place& place) {
  LoadContext& context = place.context;
  const std::string& name = search.machine.name;
  const Lender* nearest = find_gloo_machine(search.machine, context.store);
  if (nearest == nullptr) {
    context.warnings.push_back(fmt::format(
        "machine {} is uncalibrated and no machine with Gloo was measured: wires are taken as perfect",
        name));
    place.note("default (nothing measured)");
    return neutral_calibration();
  }
  Calibration calibration = nearest->calibration;
  std::vector<std::string> remarks;
  keep_host_rate(search.machine, nearest->machine, calibration, remarks);
  const bool is_at_home = search.machine.library == search.library;
  context.warnings.push_back(fmt::format("machine {} is uncalibrated{}: using {}{}", name,
                                         is_at_home ? "" : " for this library", calibration.name,
                                         in_brackets(remarks)));
  place.note(fmt::format("that of the machine with Gloo whose NIC is nearest, {}{}", calibration.name,
                         in_brackets(remarks)));
  return calibration;
}

// As many GPUs, links and NICs of the same parts: what sets two such machines apart is nothing that a library sees.
bool are_built_alike(const CalibrationSearch& search, const Lender& measured) {
  const MachineSpec& here = search.machine;
  const MachineSpec& there = measured.machine;
  const PartNames parts_here = parts_of(here, search.compute_capability);
  const PartNames parts_there = parts_of(there, measured.compute_capability);
  const auto same_part = [&](MachinePart part) {
    const auto at = static_cast<std::size_t>(part);
    return parts_here[at].front() == parts_there[at].front();
  };
  return search.library == there.library && here.library == there.library && here.gpus == there.gpus &&
         here.gpu_links == there.gpu_links && here.nics.size() == there.nics.size() &&
         nic_bandwidth(here) == nic_bandwidth(there) &&
         std::all_of(machine_parts.begin(), machine_parts.end(), same_part);
}

// The first by name; null: there is none.
const Lender* find_alike(const CalibrationSearch& search, const ProfileStore& store) {
  for (const std::string& name : store.names(ProfileKind::machine))
    if (const std::optional<Lender>& lender = find_lender(name, store);
        lender && are_built_alike(search, *lender))
      return &*lender;
  return nullptr;
}

Calibration compose_calibration(const CalibrationSearch& search, const Place& place) {
  if (const Lender* alike = find_alike(search, place.context.store)) {
    place.context.warnings.push_back(fmt::format(
        "machine {} is uncalibrated: it is built of the same parts as {}, whose calibration {} it has",
        search.machine.name, alike->machine.name, alike->calibration.name));
    place.note(fmt::format("that of {}, which is built of the same parts", alike->machine.name));
    return alike->calibration;
  }
  const MachineParts parts = open_parts(search.machine, search.compute_capability, place);
  Calibration calibration = compose(search.machine, parts);
  place.context.warnings.push_back(fmt::format("machine {} is uncalibrated: {}{}", search.machine.name,
                                               calibration.source, in_brackets(parts.remarks)));
  place.note(calibration.source + in_brackets(parts.remarks));
  return calibration;
}

}  // namespace

Calibration find_calibration(const CalibrationSearch& search, const Place& place) {
  if (std::optional<Calibration> own = find_own_calibration(search, place))
    return *std::move(own);
  return search.library == LibraryKind::gloo ? borrow_of_gloo(search, place)
                                             : compose_calibration(search, place);
}

}  // namespace lockstep
