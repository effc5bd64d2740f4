#include "sim/load/hardware/find_calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/quantity_text.h"
#include "sim/collectives/nccl_tuner.h"
#include "sim/load/hardware/kinship.h"
#include "sim/load/hardware/lenders.h"
#include "sim/load/hardware/read_calibration.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/load/reading/spelling.h"
#include "sim/network/usual_efficiency.h"

namespace lockstep {
namespace {

// A library that fills less than this of a NIC waits for something else.
constexpr std::int64_t wire_limited_ppm = 500'000;

struct Offer {
  Lender lender;
  Kinship kinship;
};

// Nothing is known: the wire as it is, and no cost beyond it.
Calibration neutral_calibration() {
  Calibration calibration;
  calibration.name = "neutral";
  calibration.source = "nothing was measured: the library gets all of every wire and each step is free";
  calibration.protocols.emplace_back().name = "simple";
  return calibration;
}

bool contains(const std::vector<std::string>& sorted, const std::string& name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

template <class T>
T read_profile(const std::string& name, const Place& place, ProfileKind kind,
               T (*read)(const JsonReader&, const Place&)) {
  JsonDocument document = JsonDocument::from_value(name, std::string(noun_of(kind)));
  T value = read_named(document.root(), place, kind, read);
  place.context.add_problems(document.problems());
  return value;
}

Calibration open_calibration(const std::string& name, const Place& place) {
  return read_profile(name, place, ProfileKind::calibration, read_calibration);
}

// A profile without a range was written by hand: nobody says that its network was measured, unless there is
// nothing else on its machine.
bool knows_network(const MachineSpec& machine, const Calibration& calibration) {
  return machine.gpus == 1 || (calibration.fitted && calibration.fitted->most_nodes > 1);
}

// None for a machine that was never measured, or whose files are broken: that is the problem of who names it.
std::optional<Lender> read_lender(const std::string& name, const ProfileStore& store) {
  LoadContext aside{.store = store, .folder = ""};
  const Place place{aside, ""};
  MachineReading reading = read_profile(name, place, ProfileKind::machine, read_machine);
  if (!reading.calibration && contains(store.names(ProfileKind::calibration), name))
    reading.calibration = open_calibration(name, place);
  if (!aside.problems.empty() || !reading.calibration)
    return std::nullopt;
  const LibraryKind library = reading.machine.library;
  const bool knows = knows_network(reading.machine, *reading.calibration);
  return Lender{.relative = {.machine = std::move(reading.machine),
                             .compute_capability = reading.gpu.compute_capability,
                             .library = library,
                             .library_version = reading.calibration->library_version,
                             .knows_network = knows},
                .calibration = *std::move(reading.calibration)};
}

std::optional<Lender> find_lender(const std::string& name, const LoadContext& context) {
  if (context.lenders == nullptr)
    return read_lender(name, context.store);
  const std::optional<Lender>* known = context.lenders->find(name);
  if (known != nullptr)
    return *known;
  std::optional<Lender> lender = read_lender(name, context.store);
  context.lenders->keep(name, lender, 1);
  return lender;
}

Relative borrower(const CalibrationSearch& search) {
  return {.machine = search.machine,
          .compute_capability = search.compute_capability,
          .library = search.library,
          .library_version = search.library_version > 0 ? search.library_version : newest_nccl};
}

// Smaller is better; the name makes the order total.
auto rank_of(const Offer& offer, const CalibrationSearch& search) {
  const Lender& lender = offer.lender;
  const bool is_other_gpu = lender.relative.machine.gpu != search.machine.gpu;
  const std::int64_t nodes = lender.calibration.fitted ? lender.calibration.fitted->most_nodes : 1;
  return std::tuple(offer.kinship.distance, is_other_gpu, -lender.relative.compute_capability, -nodes,
                    -lender.calibration.library_version, lender.relative.machine.name);
}

std::optional<Offer> find_nearest(const CalibrationSearch& search, const LoadContext& context) {
  const Relative here = borrower(search);
  std::optional<Offer> nearest;
  for (const std::string& name : context.store.names(ProfileKind::machine)) {
    std::optional<Lender> lender = find_lender(name, context);
    if (!lender || (lender->relative.library == LibraryKind::gloo) != (search.library == LibraryKind::gloo))
      continue;
    Kinship kinship = find_kinship(here, lender->relative);
    Offer offer{.lender = *std::move(lender), .kinship = std::move(kinship)};
    if (!nearest || rank_of(offer, search) < rank_of(*nearest, search))
      nearest = std::move(offer);
  }
  return nearest;
}

Bandwidth wire_of(const MachineSpec& machine, LinkClass link_class) {
  const auto& host = link_class == LinkClass::pcie ? machine.host.pcie : machine.host.socket_link;
  if (link_class == LinkClass::network)
    return nic_bandwidth(machine);
  return host ? host->bandwidth : Bandwidth{0};
}

// What moves through the host at a rate of its own.
bool is_limited_by_host(const MachineSpec& machine, LinkClass link_class, std::int64_t efficiency_ppm) {
  if (link_class == LinkClass::network)
    return efficiency_ppm < wire_limited_ppm;
  return link_class != LinkClass::nvlink && machine.gpu_links.kind == GpuLinkKind::pcie &&
         !machine.host.peer_to_peer;
}

// Efficiencies for the wires `here`; says which were the rate of a host.
void carry_over(const MachineSpec& here, const MachineSpec& there, Calibration& calibration,
                std::vector<std::string>& remarks) {
  for (auto& [link_class, efficiency] : calibration.efficiency_ppm) {
    const Bandwidth wire_here = wire_of(here, link_class);
    const Bandwidth wire_there = wire_of(there, link_class);
    if (wire_here == wire_there || wire_here == Bandwidth{0} || wire_there == Bandwidth{0} ||
        !is_limited_by_host(there, link_class, efficiency))
      continue;
    const Unsigned128 rate =
        static_cast<Unsigned128>(wire_there.count()) * static_cast<Unsigned128>(efficiency);
    const Unsigned128 share = rate / static_cast<Unsigned128>(wire_here.count());
    const auto usual = static_cast<Unsigned128>(usual_efficiency_ppm(link_class));
    efficiency = std::max<std::int64_t>(static_cast<std::int64_t>(std::min(share, usual)), 1);
    remarks.push_back(fmt::format(
        "the host's {} over {} links is kept as a rate",
        format_bandwidth(Bandwidth{static_cast<std::int64_t>(rate / static_cast<Unsigned128>(million))}),
        name_of(link_class, link_class_spellings)));
  }
}

// Half as far from 1 again, as for a fit of which nothing was held out; in logarithms: no time is below zero.
std::int64_t wider(std::int64_t residual_ppm) {
  const double ratio = 1 + static_cast<double>(residual_ppm) / static_cast<double>(million);
  return std::llround((ratio * std::sqrt(ratio) - 1) * static_cast<double>(million));
}

// As it holds on `here`; `remarks` then says all that differs.
Calibration borrow(const MachineSpec& here, const Lender& lender, std::vector<std::string>& remarks) {
  Calibration calibration = lender.calibration;
  if (remarks.empty())
    return calibration;
  carry_over(here, lender.relative.machine, calibration, remarks);
  for (ResidualBand& band : calibration.communication_residuals) {
    band.low_ppm = wider(band.low_ppm);
    band.high_ppm = wider(band.high_ppm);
  }
  return calibration;
}

std::string in_brackets(const std::vector<std::string>& remarks) {
  return remarks.empty() ? "" : fmt::format(" ({})", fmt::join(remarks, "; "));
}

// Its own, though a scenario may have put other parts into it; none if that made it a machine of another kind.
std::optional<Calibration> find_own_calibration(const CalibrationSearch& search, const Place& place) {
  LoadContext& context = place.context;
  const std::string& name = search.machine.name;
  if (search.machine.library != search.library ||
      !contains(context.store.names(ProfileKind::calibration), name))
    return std::nullopt;
  const std::optional<Lender> fitted = find_lender(name, context);
  if (!fitted)
    return open_calibration(name, place);
  Relative as_fitted = fitted->relative;
  as_fitted.knows_network = true;  // nothing nearer is looked for
  Kinship kinship = find_kinship(
      {.machine = search.machine, .compute_capability = search.compute_capability, .library = search.library},
      as_fitted);
  if (kinship.is_other_kind)
    return std::nullopt;
  Calibration calibration = borrow(search.machine, *fitted, kinship.differences);
  if (!kinship.differences.empty())
    context.warnings.push_back(fmt::format("machine {} is not what its calibration was fitted to{}", name,
                                           in_brackets(kinship.differences)));
  return calibration;
}

Calibration borrow_calibration(const CalibrationSearch& search, const Place& place) {
  LoadContext& context = place.context;
  const std::string& name = search.machine.name;
  std::optional<Offer> nearest = find_nearest(search, context);
  if (!nearest) {
    context.warnings.push_back(
        fmt::format("machine {} is uncalibrated and has no relative: wires are taken as perfect", name));
    place.note("default (nothing measured)");
    return neutral_calibration();
  }
  std::vector<std::string>& remarks = nearest->kinship.differences;
  Calibration calibration = borrow(search.machine, nearest->lender, remarks);
  const bool is_at_home = search.machine.library == search.library;
  context.warnings.push_back(fmt::format("machine {} is uncalibrated{}: using {}{}", name,
                                         is_at_home ? "" : " for this library", calibration.name,
                                         in_brackets(remarks)));
  place.note(fmt::format("the nearest relative's, {}{}", calibration.name, in_brackets(remarks)));
  return calibration;
}

}  // namespace

Calibration find_calibration(const CalibrationSearch& search, const Place& place) {
  std::optional<Calibration> own = find_own_calibration(search, place);
  return own ? *std::move(own) : borrow_calibration(search, place);
}

}  // namespace lockstep
