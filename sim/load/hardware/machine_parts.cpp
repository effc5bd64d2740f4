#include "sim/load/hardware/machine_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "sim/load/hardware/read_calibration.h"
#include "sim/load/hardware/write_calibration.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Names = std::vector<std::string>;

// From the oldest: neighbours are each other's nearest.
struct Architecture {
  std::int64_t from;  // compute capability
  const char* name;
};
constexpr std::array architectures{Architecture{0, "kepler"},           Architecture{50, "maxwell"},
                                   Architecture{60, "pascal"},          Architecture{70, "volta"},
                                   Architecture{75, "turing"},          Architecture{80, "ampere"},
                                   Architecture{86, "ampere_ga10x"},    Architecture{89, "ada"},
                                   Architecture{90, "hopper"},          Architecture{100, "blackwell"},
                                   Architecture{120, "blackwell_gb20x"}};

// By distance from `place`; of two as near, the newer.
template <class Name>
Names nearest_first(std::size_t place, std::size_t count, Name name) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  const auto distance = [&](std::size_t i) { return i > place ? 2 * (i - place) - 1 : 2 * (place - i); };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
  Names names;
  for (const std::size_t i : order) names.push_back(name(i));
  return names;
}

Names gpu_names(const MachineSpec& machine, std::int64_t compute_capability) {
  std::size_t place = 0;
  for (std::size_t i = 0; i < architectures.size(); ++i)
    if (compute_capability >= architectures[i].from)
      place = i;
  Names names =
      nearest_first(place, architectures.size(), [](std::size_t i) { return architectures[i].name; });
  if (machine.library == LibraryKind::rccl)
    names.insert(names.begin(), "cdna");
  return names;
}

// The links that GPUs of an architecture were built with.
std::size_t nvlink_generation(const LinkSpec& link, std::int64_t compute_capability) {
  constexpr std::string_view prefix = "nvlink";
  if (link.name.starts_with(prefix) && link.name.size() == prefix.size() + 1)
    return static_cast<std::size_t>(std::clamp(link.name.back() - '0', 1, 5));
  constexpr std::array firsts{60, 70, 80, 90, 100};
  const auto after = std::upper_bound(firsts.begin(), firsts.end(), compute_capability);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(after - firsts.begin(), 1));
}

Names in_node_names(const MachineSpec& machine, std::int64_t compute_capability) {
  if (classes_in_node(machine).front() != LinkClass::nvlink)
    return machine.host.peer_to_peer ? Names{"pcie_peer", "pcie_host"} : Names{"pcie_host", "pcie_peer"};
  const std::size_t built_with = nvlink_generation(machine.gpu_links.link, compute_capability);
  Names names =
      nearest_first(built_with - 1, 5, [](std::size_t i) { return fmt::format("nvlink{}", i + 1); });
  if (machine.library == LibraryKind::rccl)
    names.insert(names.begin(), "infinity_fabric");
  return names;
}

// Kinds of networks by what their links are called, and what is most like each: generations stand in for each other,
// then kernel-bypass networks for kernel-bypass networks and sockets for sockets.
struct Network {
  const char* prefix;
  Names names;
};

const std::vector<Network>& networks() {
  static const std::vector<Network> known{
      {"edr", {"infiniband_edr", "infiniband_hdr", "infiniband_ndr", "roce"}},
      {"hdr", {"infiniband_hdr", "infiniband_edr", "infiniband_ndr", "roce"}},
      {"ndr", {"infiniband_ndr", "infiniband_hdr", "roce"}},
      {"xdr", {"infiniband_xdr", "infiniband_ndr", "infiniband_hdr", "roce"}},
      {"roce", {"roce", "infiniband_ndr"}},
      {"omnipath", {"omnipath", "infiniband_edr"}},
      {"slingshot", {"slingshot", "efa", "infiniband_hdr"}},
      {"efa", {"efa", "slingshot", "infiniband_hdr"}},
      {"gcp_fastrak", {"fastrak", "roce", "infiniband_hdr"}},
      {"gcp_tcpx", {"tcpx", "sockets", "fastrak"}},
      {"ethernet", {"sockets", "slingshot_tcp", "tcpx"}},
      {"gbe", {"sockets", "slingshot_tcp", "tcpx"}}};
  return known;
}

const Names& names_of_prefix(std::string_view name) {
  const auto found = std::find_if(networks().begin(), networks().end(),
                                  [&](const Network& network) { return name.starts_with(network.prefix); });
  static const Names none;
  return found == networks().end() ? none : found->names;
}

// A NIC that is not called anything is told by its latency, since a kernel's stack takes many microseconds, and
// InfiniBand's generation by its rate.
const Names& names_of_network(const LinkSpec& link) {
  if (const Names& named = names_of_prefix(link.name); !named.empty())
    return named;
  constexpr Duration longest_bypass = Duration::microseconds(5);
  constexpr Bandwidth hdr{20'000'000'000};
  constexpr Bandwidth ndr{40'000'000'000};
  if (link.latency > longest_bypass)
    return names_of_prefix("ethernet");
  return names_of_prefix(link.bandwidth < hdr ? "edr" : link.bandwidth < ndr ? "hdr" : "ndr");
}

// GPUs that let nobody into their memory send through their host's.
Names network_names(const MachineSpec& machine, const std::string& network) {
  Names names = machine.nics.empty() ? names_of_prefix("edr") : names_of_network(machine.nics.front().link);
  if (!machine.host.peer_to_peer && names.front() != "sockets")
    names.insert(names.begin(), names.front().substr(0, names.front().find('_')) + "_staged");
  if (!network.empty())
    names.insert(names.begin(), network);
  return names;
}

constexpr auto machine_part_spellings =
    std::to_array<Spelling<MachinePart>>({{name_of(MachinePart::gpu), MachinePart::gpu},
                                          {name_of(MachinePart::in_node), MachinePart::in_node},
                                          {name_of(MachinePart::network), MachinePart::network}});

constexpr double widest_spread = 10;

PartConstant read_constant(const JsonReader& json) {
  PartConstant constant;
  constant.value = json.required("value").number(1e-6, 1e6, "in the unit that it states");
  constant.spread = json.required("spread").number(0, widest_spread, "of the logarithm");
  text_or(json, "unit", "");
  json.finish();
  return constant;
}

std::string_view unit_text(CommunicationUnit unit) {
  constexpr std::array<std::string_view, 3> texts{"us", "", "GB/s"};
  return texts[static_cast<std::size_t>(unit)];
}

double four_digits(double value) {
  return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr);
}

// What is known of a part, or of what stands in for it; nothing: the usual values.
PartProfile open_nearest(const Names& names, const Place& place, std::vector<std::string>& remarks) {
  const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return place.context.store.has(ProfileKind::part, name);
  });
  if (found == names.end()) {
    remarks.push_back(fmt::format("nothing was measured of {}: usual values", names.front()));
    PartProfile unknown;
    unknown.name = names.front();
    return unknown;
  }
  if (found != names.begin())
    remarks.push_back(fmt::format("{} stands in for {}", *found, names.front()));
  return open_named(*found, place, ProfileKind::part, read_part);
}

// Half as far from 1 again, in logarithms: no time is below zero.
Ratio wider(Ratio residual) {
  const double ratio = 1 + residual.in_real();
  return Ratio::parts_per_million(std::llround((ratio * std::sqrt(ratio) - 1) * 1e6));
}

// The widest of the parts' bands for each size.
std::vector<ResidualBand> widest_bands(const MachineParts& parts) {
  std::vector<ResidualBand> bands;
  for (const PartProfile& part : parts.profiles) {
    if (bands.empty())
      bands = part.residuals;
    for (std::size_t i = 0; i < std::min(bands.size(), part.residuals.size()); ++i) {
      bands[i].low = std::min(bands[i].low, part.residuals[i].low);
      bands[i].high = std::max(bands[i].high, part.residuals[i].high);
    }
  }
  if (!parts.remarks.empty())
    widen(bands);
  return bands;
}

std::string describe(const PartProfile& part) {
  if (part.machines == 0)
    return part.name + " (not measured)";
  return fmt::format("{} ({} table{} of {} machine{})", part.name, part.tables, part.tables == 1 ? "" : "s",
                     part.machines, part.machines == 1 ? "" : "s");
}

}  // namespace

double value_of(const PartProfile& part, const CommunicationConstant& constant) {
  const auto known = part.constants.find(std::string(constant.key));
  return known == part.constants.end() ? constant.usual : known->second.value;
}

void widen(std::vector<ResidualBand>& bands) {
  for (ResidualBand& band : bands) band = {wider(band.low), wider(band.high), band.from};
}

PartNames parts_of(const MachineSpec& machine, std::int64_t compute_capability, const std::string& network) {
  return {gpu_names(machine, compute_capability), in_node_names(machine, compute_capability),
          network_names(machine, network)};
}

std::string_view without_generation(std::string_view network) {
  constexpr std::array<std::string_view, 4> generations{"infiniband_edr", "infiniband_hdr", "infiniband_ndr",
                                                        "infiniband_xdr"};
  const bool is_one = std::find(generations.begin(), generations.end(), network) != generations.end();
  return is_one ? network.substr(0, network.find('_')) : network;
}

bool is_carried_by_host(std::string_view network) {
  constexpr std::array<std::string_view, 2> whole{"sockets", "tcpx"};
  return std::find(whole.begin(), whole.end(), network) != whole.end() || network.ends_with("_staged") ||
         network.ends_with("_tcp");
}

PartProfile read_part(const JsonReader& json, const Place&) {
  PartProfile part;
  part.name = json.required("name").text();
  part.source = text_or(json, "source", "");
  part.part = read_spelled(json.required("part"), machine_part_spellings);
  part.machines = json.required("machines").integer(0, 1'000'000);
  part.tables = json.required("tables").integer(0, 1'000'000);
  const JsonReader constants = json.required("constants");
  for (const CommunicationConstant& constant : communication_constants())
    if (constant.part == part.part)
      if (const auto stated = constants.optional(constant.key))
        part.constants[std::string(constant.key)] = read_constant(*stated);
  constants.finish();
  if (const auto residuals = json.optional("residuals"))
    part.residuals = read_residual_bands(*residuals);
  read_computing(json, part.computing);
  json.finish();
  return part;
}

ordered_json write_part(const PartProfile& part) {
  ordered_json json{{"name", part.name},
                    {"part", name_of(part.part)},
                    {"source", part.source},
                    {"machines", part.machines},
                    {"tables", part.tables}};
  for (const CommunicationConstant& constant : communication_constants())
    if (const auto known = part.constants.find(std::string(constant.key));
        constant.part == part.part && known != part.constants.end())
      json["constants"][constant.key] = {{"value", four_digits(known->second.value)},
                                         {"unit", unit_text(constant.unit)},
                                         {"spread", four_digits(known->second.spread)}};
  if (!part.residuals.empty())
    json["residuals"] = write_residual_bands(part.residuals);
  write_computing(part.computing, json);
  return json;
}

MachineParts open_parts(const MachineSpec& machine, std::int64_t compute_capability, const Place& place) {
  MachineParts parts;
  const PartNames names = parts_of(machine, compute_capability);
  for (std::size_t i = 0; i < names.size(); ++i)
    parts.profiles[i] = open_nearest(names[i], place, parts.remarks);
  return parts;
}

Calibration compose(const MachineSpec& machine, const MachineParts& parts) {
  Calibration calibration =
      blank_communication(parts.profiles[static_cast<std::size_t>(MachinePart::gpu)].computing);
  const std::vector<LinkClass> in_node = classes_in_node(machine);
  for (const CommunicationConstant* constant : constants_of(machine))
    constant->put(calibration, in_node,
                  value_of(parts.profiles[static_cast<std::size_t>(constant->part)], *constant));
  const auto& [gpu, links, network] = parts.profiles;
  calibration.name = fmt::format("{}, {}, {}", gpu.name, links.name, network.name);
  calibration.source =
      fmt::format("composed of parts: {}, {}, {}", describe(gpu), describe(links), describe(network));
  calibration.host_launch = usual_host_launch;
  calibration.communication_residuals = widest_bands(parts);
  return calibration;
}

}  // namespace lockstep
