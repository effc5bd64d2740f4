#include "sim/study/bench/narrowest_cut.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::int64_t first_with_adding_switch = 90;  // compute capability: NVSwitch's third generation

// Both NVLinks and PCIe, since a GPU may use both.
double wires_of_gpu(const MachineSpec& machine) {
  const GpuLinks& own = machine.gpu_links;
  double links = 0;
  if (own.kind == GpuLinkKind::nvswitch)
    links = static_cast<double>(own.links_per_gpu);
  if (own.kind == GpuLinkKind::mesh)
    for (const std::int64_t joined : own.matrix.front()) links += static_cast<double>(joined);
  const double pcie = machine.host.pcie ? static_cast<double>(machine.host.pcie->bandwidth.count()) : 0;
  return links * static_cast<double>(own.link.bandwidth.count()) + pcie;
}

double wires_of_node(const MachineSpec& machine) {
  double sum = 0;
  for (const NicSpec& nic : machine.nics) sum += static_cast<double>(nic.link.bandwidth.count());
  return sum;
}

// What must leave or enter a part of `part` ranks of `ranks`, in sizes. An all-reduce over P equal parts moves
// 2 (P - 1) sizes altogether, so some part sends 2 (P - 1) / P; where switches add, one size leaves it.
double crossing(CollectiveOp op, double part, double ranks, bool switches_add) {
  const double others = (ranks - part) / ranks;
  switch (op) {
    case CollectiveOp::all_reduce:
      return switches_add ? 1 : 2 * others;
    case CollectiveOp::all_to_all:
      return part * others;
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce:
    case CollectiveOp::send_recv:
      return 1;
    default:
      return others;
  }
}

double seconds_over(double sizes, Bytes size, double wires) {
  return wires > 0 ? sizes * static_cast<double>(size.count()) / wires : 0;
}

}  // namespace

Duration narrowest_cut_time(const ClusterSpec& cluster, CollectiveOp op, Bytes size) {
  const auto ranks = static_cast<double>(cluster.ranks());
  const auto per_node = static_cast<double>(cluster.gpus_per_node);
  if (ranks < 2)
    return Duration::zero();
  const bool switches_add = cluster.machine.gpu_links.kind == GpuLinkKind::nvswitch &&
                            cluster.gpu.compute_capability >= first_with_adding_switch;
  double least = 0;
  // A GPU alone in its node sends through its NICs, which may stand beside it in any number.
  if (cluster.gpus_per_node > 1)
    least = seconds_over(crossing(op, 1, ranks, switches_add), size, wires_of_gpu(cluster.machine));
  if (cluster.nodes > 1)
    least = std::max(least, seconds_over(crossing(op, per_node, ranks, cluster.fabric.in_network_reduction),
                                         size, wires_of_node(cluster.machine)));
  return Duration::picoseconds(static_cast<std::int64_t>(least * 1e12));
}

}  // namespace lockstep
