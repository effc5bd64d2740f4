// No shipped machine moves more than its wires carry: for every collective, what must cross the links of one
// GPU, and the NICs of one node, takes at least its time there.
//
// The bounds know the profile alone: bandwidths of wires, how many a GPU and a node have, and how many bytes
// any algorithm must move over a cut. No algorithm, ring, protocol or calibration enters; efficiencies above
// the wire, which some fits have, are taken as 1.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "sim/study/bench/collective_table.h"
#include "tests/support/scenarios.h"

namespace lockstep::narrowest_cut_test {

constexpr std::array all_ops{CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                             CollectiveOp::broadcast,  CollectiveOp::reduce,     CollectiveOp::all_to_all,
                             CollectiveOp::send_recv,  CollectiveOp::gather,     CollectiveOp::scatter};

// Both NVLinks and PCIe, since a GPU may use both.
double wires_of_gpu(const MachineSpec& machine, std::size_t gpu) {
  const GpuLinks& own = machine.gpu_links;
  double links = 0;
  if (own.kind == GpuLinkKind::nvswitch)
    links = static_cast<double>(own.links_per_gpu);
  if (own.kind == GpuLinkKind::mesh)
    for (const std::int64_t joined : own.matrix[gpu]) links += static_cast<double>(joined);
  const double pcie = machine.host.pcie ? static_cast<double>(machine.host.pcie->bandwidth.count()) : 0;
  return links * static_cast<double>(own.link.bandwidth.count()) + pcie;
}

double wires_of_node(const MachineSpec& machine) {
  double sum = 0;
  for (const NicSpec& nic : machine.nics) sum += static_cast<double>(nic.link.bandwidth.count());
  return sum;
}

// What must leave or enter a part of `part` ranks of `ranks`, in sizes as nccl-tests states them. An AllReduce
// over P equal parts moves 2 (P - 1) sizes altogether, so some part sends 2 (P - 1) / P; where switches add,
// one size leaves it.
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

// The shortest time that `size` bytes can take, in seconds.
double least_time(const Scenario& scenario, CollectiveOp op, double size) {
  const ClusterSpec& cluster = scenario.cluster;
  const auto ranks = static_cast<double>(cluster.ranks());
  const bool has_multicast =
      cluster.machine.gpu_links.kind == GpuLinkKind::nvswitch && cluster.gpu.compute_capability >= 90;
  const double over_gpu = crossing(op, 1, ranks, has_multicast) * size / wires_of_gpu(cluster.machine, 0);
  if (cluster.nodes == 1)
    return over_gpu;
  const double over_nics = crossing(op, static_cast<double>(cluster.gpus_per_node), ranks, false) * size /
                           wires_of_node(cluster.machine);
  return cluster.gpus_per_node == 1 ? over_nics : std::max(over_gpu, over_nics);
}

void keep_to_the_wire(Calibration& calibration) {
  for (auto& [link_class, efficiency] : calibration.efficiency)
    efficiency = std::min(efficiency, Ratio::one());
}

TEST_CASE("On every shipped machine no collective is faster than its narrowest cut") {
  const Bytes size{std::int64_t{1} << 30};
  for (const std::string& machine : shipped_machine_names())
    for (const std::int64_t nodes : {1, 2, 4}) {
      Scenario scenario = load_collective_setting({.machine = machine, .nodes = nodes}, shipped_profiles());
      if (scenario.cluster.ranks() < 2 || (nodes > 1 && scenario.cluster.machine.nics.empty()))
        continue;
      keep_to_the_wire(scenario.cluster.calibration);
      const CollectiveBench bench(scenario);
      for (const CollectiveOp op : all_ops) {
        const CollectiveRow row = bench.predict(op, size);
        const double least = least_time(scenario, op, static_cast<double>(row.size.count()));
        INFO(nodes, " x ", machine, " ", collective_op_name(op), ", ", row.algorithm);
        CHECK(row.time.in_seconds() >= least);
      }
    }
}

// Enough that a node's links between GPUs do not bind either: the eight NICs do.
TEST_CASE("Two nodes of MI300X come within a tenth of what their calibrated NICs carry") {
  const Scenario scenario =
      load_collective_setting({.machine = "mi300x_8gpu", .nodes = 2}, shipped_profiles());
  const double efficiency = scenario.cluster.calibration.efficiency.at(LinkClass::network).in_real();
  const double nics = wires_of_node(scenario.cluster.machine) * efficiency;
  const CollectiveRow row = CollectiveBench(scenario).predict(CollectiveOp::all_reduce, Bytes{8LL << 30});
  CHECK(static_cast<double>(row.busbw.count()) > 0.9 * nics);
  CHECK(static_cast<double>(row.busbw.count()) <= nics);
}

}  // namespace lockstep::narrowest_cut_test
