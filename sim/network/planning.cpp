#include "sim/network/planning.h"

#include <algorithm>
#include <array>
#include <span>

namespace lockstep {
namespace {

// Where a profile does not say what NCCL plans with: four fifths of the wire.
Bandwidth planned(const LinkSpec& link) {
  return link.nccl_bandwidth.value_or(Bandwidth{link.bandwidth.count() / 5 * 4});
}

Bandwidth in_node_bandwidth(const MachineSpec& machine, std::size_t rings) {
  switch (machine.gpu_links.kind) {
    case GpuLinkKind::nvswitch:
      return planned(machine.gpu_links.link) * machine.gpu_links.links_per_gpu;
    case GpuLinkKind::mesh:
      return planned(machine.gpu_links.link) * static_cast<std::int64_t>(rings);
    case GpuLinkKind::pcie:
    case GpuLinkKind::none:
      break;
  }
  if (!machine.host.pcie)
    return Bandwidth{0};
  const Bandwidth pcie = planned(*machine.host.pcie);
  return machine.host.socket_link ? std::min(pcie, planned(*machine.host.socket_link)) : pcie;
}

Bandwidth between_nodes_bandwidth(const MachineSpec& machine, const std::vector<std::uint32_t>& nics,
                                  Bandwidth in_node) {
  Bandwidth all{0};
  for (const std::uint32_t nic : nics) all += planned(machine.nics[nic].link);
  return in_node > Bandwidth{0} ? std::min(all, in_node) : all;
}

// The speeds that NCCL's search tries inside a node, in GB/s (NVIDIA/nccl src/graph/search.cc, sm90SpeedArrayIntra and
// sm100SpeedArrayIntra). Between nodes it tries others, of which (40 on Hopper, 80 on Blackwell) eight heads get the
// same.
constexpr std::array<std::int64_t, 11> tried_on_hopper{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr std::array<std::int64_t, 12> tried_on_blackwell{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};

std::span<const std::int64_t> speeds_tried(std::int64_t compute_capability) {
  if (compute_capability >= 100)
    return tried_on_blackwell;
  return tried_on_hopper;
}

// The largest of them that all heads can have at once.
Bandwidth multicast_per_head(const MachineSpec& machine, std::uint32_t gpus,
                             std::int64_t compute_capability) {
  const std::int64_t giga = 1'000'000'000;
  const Bandwidth all = planned(machine.gpu_links.link) * machine.gpu_links.links_per_gpu;
  for (const std::int64_t speed : speeds_tried(compute_capability))
    if (speed * giga * (gpus + 1) <= all.count())
      return Bandwidth{speed * giga};
  return Bandwidth{0};
}

// Nothing but PCIe switches lies between a NIC and the GPU beside it.
bool has_near_nics(const Topology& topology, const MachineSpec& machine) {
  if (machine.nics.empty())
    return false;
  const NodeGraph& node = topology.node();
  for (std::size_t nic = 0; nic < node.nic_count(); ++nic) {
    bool is_near = false;
    for (std::uint32_t gpu = 0; gpu < topology.gpus_per_node(); ++gpu) {
      const auto& path = node.path(node.gpu(gpu), node.nic(nic));
      is_near = is_near || std::none_of(path.begin(), path.end(), [&](std::uint32_t link) {
                  return node.vertex_name(node.links()[link].to).starts_with("socket");
                });
    }
    if (!is_near)
      return false;
  }
  return true;
}

}  // namespace

std::uint32_t nics_in_use(const Topology& topology, const MachineSpec& machine) {
  const auto gpus = static_cast<std::int64_t>(topology.gpus_per_node());
  std::uint32_t count = 0;
  for (const NicSpec& nic : machine.nics) {
    if (!nic.gpus.empty() && *std::min_element(nic.gpus.begin(), nic.gpus.end()) >= gpus)
      break;
    ++count;
  }
  return std::clamp(count, 1u, topology.nics_per_node());
}

std::optional<Bandwidth> most_per_channel(std::int64_t compute_capability) {
  if (compute_capability == 0)
    return std::nullopt;
  const std::int64_t giga = 1'000'000'000;
  const Bandwidth of_ring{(compute_capability > 80 ? 50 : 25) * giga};
  return share(of_ring, 2);
}

bool has_multicast(const MachineSpec& machine, std::int64_t compute_capability) {
  return machine.gpu_links.kind == GpuLinkKind::nvswitch && compute_capability >= 90;
}

PlanningFacts plan_as_nccl(const Topology& topology, const WorldOptions& options, const PlannedUse& use) {
  const MachineSpec& machine = options.machine;
  PlanningFacts facts{.compute_capability = options.compute_capability};
  facts.has_amd_host = machine.host.socket_link && machine.host.socket_link->name == "xgmi";
  facts.has_nvlink =
      machine.gpu_links.kind == GpuLinkKind::nvswitch || machine.gpu_links.kind == GpuLinkKind::mesh;
  facts.has_near_nics = has_near_nics(topology, machine);
  facts.in_node = in_node_bandwidth(machine, use.rings);
  if (!machine.nics.empty()) {
    facts.between_nodes = between_nodes_bandwidth(machine, use.nics, facts.in_node);
    facts.protocols = machine.nics.front().link.protocols;
  }
  if (has_multicast(machine, options.compute_capability))
    facts.multicast_per_head = multicast_per_head(machine, use.gpus_per_node, options.compute_capability);
  return facts;
}

}  // namespace lockstep
