#include "sim/load/hardware/kinship.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "sim/base/quantity_text.h"
#include "sim/load/reading/spelling.h"

namespace lockstep {
namespace {

// Points. Those of a whole step: a generation of GPUs is 1.0 of compute capability, a rate counts by octaves.
constexpr std::int64_t other_kind = 64;         // CUDA devices, those of another maker, CPUs
constexpr std::int64_t other_way_in_node = 32;  // wires of the GPUs' own or PCIe
constexpr std::int64_t other_library = 16;
constexpr std::int64_t other_peer_to_peer = 8;  // PCIe: from GPU to GPU or through host memory
constexpr std::int64_t generation = 4;
constexpr std::int64_t other_member = 1;  // of a generation: 8.6 beside 8.0
constexpr std::int64_t switch_or_mesh = 4;
constexpr std::int64_t other_network = 3;
constexpr std::int64_t unknown_network = 2;  // the fit's usual values: better than those of another network
constexpr std::int64_t other_rdma = 1;
constexpr std::int64_t octave = 1;
constexpr std::int64_t other_link = 1;
constexpr std::int64_t minor_releases_a_point = 16;
constexpr std::int64_t unknown_release = 1;

struct NetworkKind {
  std::string_view prefix;  // of a link's name
  std::string_view name;
  bool has_rdma;  // NICs read and write GPUs' memory, and retry in hardware
};

constexpr std::array network_kinds{NetworkKind{"edr", "InfiniBand", true},
                                   NetworkKind{"hdr", "InfiniBand", true},
                                   NetworkKind{"ndr", "InfiniBand", true},
                                   NetworkKind{"xdr", "InfiniBand", true},
                                   NetworkKind{"roce", "RoCE", true},
                                   NetworkKind{"slingshot", "Slingshot", true},
                                   NetworkKind{"omnipath", "Omni-Path", true},
                                   NetworkKind{"efa", "EFA", false},
                                   NetworkKind{"gcp_tcpx", "GPUDirect-TCPX", false},
                                   NetworkKind{"gcp_fastrak", "FasTrak", false},
                                   NetworkKind{"ethernet", "Ethernet", false},
                                   NetworkKind{"gbe", "Ethernet", false}};

const NicSpec* fastest_nic(const MachineSpec& machine) {
  const auto found = std::max_element(
      machine.nics.begin(), machine.nics.end(),
      [](const NicSpec& a, const NicSpec& b) { return a.link.bandwidth < b.link.bandwidth; });
  return found == machine.nics.end() ? nullptr : &*found;
}

// Null: an inline link, or one that is named like none of these.
const NetworkKind* network_kind(const NicSpec& nic) {
  const auto found = std::find_if(network_kinds.begin(), network_kinds.end(), [&](const NetworkKind& kind) {
    return nic.link.name.starts_with(kind.prefix);
  });
  return found == network_kinds.end() ? nullptr : &*found;
}

// How often the smaller must be doubled to come nearest to the larger; nothing where either is not known.
std::int64_t octaves(std::int64_t a, std::int64_t b) {
  std::int64_t small = std::min(a, b);
  const std::int64_t large = std::max(a, b);
  std::int64_t count = 0;
  for (; small > 0 && small <= large / 3 * 2; small *= 2) ++count;
  return count;
}

// To a twentieth: as far as two ways to state the rate of one link.
bool are_alike(std::int64_t a, std::int64_t b) {
  const std::int64_t large = std::max(a, b);
  return large - std::min(a, b) <= large / 20;
}

// 2.28.9 is 22809, 2.8.4 is 2804.
std::int64_t minor_release(std::int64_t version) {
  return version >= 10'000 ? version / 100 % 100 : version / 100 % 10;
}

std::string capability_text(std::int64_t capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

// No more than there is room for: anything may stand in a user's machine.
Bandwidth links_together(Bandwidth link, std::int64_t count) {
  constexpr Unsigned128 most = 1'000'000'000'000'000'000;
  const Unsigned128 all = static_cast<Unsigned128>(link.count()) * static_cast<Unsigned128>(count);
  return Bandwidth{static_cast<std::int64_t>(std::min(all, most))};
}

bool has_own_wires(const MachineSpec& machine) {
  return machine.gpu_links.kind == GpuLinkKind::nvswitch || machine.gpu_links.kind == GpuLinkKind::mesh;
}

// As NICs are sold.
std::string gigabits(Bandwidth bandwidth) {
  return fmt::format("{:.3g}", static_cast<double>(bandwidth.count()) * 8 / 1e9);
}

std::int64_t generation_points(std::int64_t here, std::int64_t there) {
  if (here == there)
    return 0;
  if (here / 10 == there / 10)
    return other_member;
  return std::max(std::abs(here - there) * generation / 10, other_member + 1);
}

class Comparison {
 public:
  Comparison(const Relative& here, const Relative& there) : here_(here), there_(there) {}

  Kinship make() && {
    compare_libraries();
    compare_gpus();
    if (here_.machine.gpu_links.kind != GpuLinkKind::none &&
        there_.machine.gpu_links.kind != GpuLinkKind::none)
      compare_insides();
    if (here_.knows_network && !here_.machine.nics.empty())
      compare_networks();
    return std::move(kinship_);
  }

 private:
  void differ(std::int64_t points, const std::string& words) {
    kinship_.distance += points;
    if (!words.empty())
      kinship_.differences.push_back(words);
  }

  void differ_in_kind(std::int64_t points, const std::string& words) {
    differ(points, words);
    kinship_.is_other_kind = true;
  }

  // A release is no part of the machine, and the user may ask for another: it counts and is not said.
  void compare_libraries() {
    if (here_.library != there_.library)
      differ(other_library, fmt::format("{} instead of {}", name_of(here_.library, library_spellings),
                                        name_of(there_.library, library_spellings)));
    if (here_.library_version == 0)
      return;
    const std::int64_t apart =
        std::abs(minor_release(here_.library_version) - minor_release(there_.library_version));
    differ(there_.library_version == 0 ? unknown_release : apart / minor_releases_a_point, "");
  }

  void compare_gpus() {
    const std::int64_t here = here_.compute_capability;
    const std::int64_t there = there_.compute_capability;
    if (here_.machine.gpu == there_.machine.gpu && here == there)
      return;
    std::string words = fmt::format("{} instead of {}", here_.machine.gpu, there_.machine.gpu);
    if ((here == 0) != (there == 0) || (here_.machine.gpu == "cpu") != (there_.machine.gpu == "cpu"))
      return differ_in_kind(other_kind, words + ", of another kind");
    if (here != there)
      words +=
          fmt::format(", compute capability {} instead of {}", capability_text(here), capability_text(there));
    differ(generation_points(here, there), words);
  }

  void compare_insides() {
    const MachineSpec& here = here_.machine;
    const MachineSpec& there = there_.machine;
    const auto kind = [](const MachineSpec& machine) {
      return name_of(machine.gpu_links.kind, gpu_link_spellings);
    };
    const std::string other_inside = fmt::format("{} instead of {} inside the node", kind(here), kind(there));
    if (has_own_wires(here) != has_own_wires(there))
      differ_in_kind(other_way_in_node, other_inside);
    else if (here.gpu_links.kind != there.gpu_links.kind)
      differ(switch_or_mesh, other_inside);
    else if (!has_own_wires(here) && here.host.peer_to_peer != there.host.peer_to_peer)
      differ(other_peer_to_peer, here.host.peer_to_peer ? "peer to peer instead of host memory"
                                                        : "host memory instead of peer to peer");
    compare_links();
    if (here.gpus != there.gpus)
      differ(octaves(here.gpus, there.gpus) * octave,
             fmt::format("{} GPUs a node instead of {}", here.gpus, there.gpus));
  }

  void compare_links() {
    const auto link = [](const MachineSpec& machine) {
      if (has_own_wires(machine))
        return machine.gpu_links.link.name;
      return machine.host.pcie ? machine.host.pcie->name : std::string();
    };
    const std::string here = link(here_.machine);
    const std::string there = link(there_.machine);
    if (!here.empty() && !there.empty() && here != there)
      differ(other_link, fmt::format("{} instead of {}", here, there));
    const Bandwidth rate_here = bandwidth_in_node(here_.machine);
    const Bandwidth rate_there = bandwidth_in_node(there_.machine);
    if (const std::int64_t apart = octaves(rate_here.count(), rate_there.count()))
      differ(apart * octave, fmt::format("{} a GPU instead of {}", format_bandwidth(rate_here),
                                         format_bandwidth(rate_there)));
  }

  void compare_networks() {
    const NicSpec* there = fastest_nic(there_.machine);
    if (!there_.knows_network || there == nullptr)
      return differ(unknown_network, "nothing was measured between its nodes");
    const NicSpec& here = *fastest_nic(here_.machine);
    compare_network_kinds(network_kind(here), network_kind(*there));
    if (!are_alike(here.link.bandwidth.count(), there->link.bandwidth.count()))
      differ(octaves(here.link.bandwidth.count(), there->link.bandwidth.count()) * octave,
             fmt::format("NICs of {} instead of {} Gbit/s", gigabits(here.link.bandwidth),
                         gigabits(there->link.bandwidth)));
  }

  void compare_network_kinds(const NetworkKind* here, const NetworkKind* there) {
    if (here == nullptr || there == nullptr || here->name == there->name)
      return;
    differ(here->has_rdma && there->has_rdma ? other_rdma : other_network,
           fmt::format("{} instead of {}", here->name, there->name));
  }

  const Relative& here_;
  const Relative& there_;
  Kinship kinship_;
};

}  // namespace

Kinship find_kinship(const Relative& here, const Relative& there) {
  return Comparison(here, there).make();
}

Bandwidth bandwidth_in_node(const MachineSpec& machine) {
  const GpuLinks& links = machine.gpu_links;
  if (links.kind == GpuLinkKind::nvswitch)
    return links_together(links.link.bandwidth, links.links_per_gpu);
  if (links.kind == GpuLinkKind::mesh && !links.matrix.empty())
    return links_together(links.link.bandwidth, std::accumulate(links.matrix.front().begin(),
                                                                links.matrix.front().end(), std::int64_t{0}));
  return machine.host.pcie ? machine.host.pcie->bandwidth : Bandwidth{0};
}

Bandwidth nic_bandwidth(const MachineSpec& machine) {
  const NicSpec* nic = fastest_nic(machine);
  return nic == nullptr ? Bandwidth{0} : nic->link.bandwidth;
}

}  // namespace lockstep
