// No shipped machine moves more than its wires carry: for every collective, what must cross the links of one
// GPU, and the NICs of one node, takes at least its time there.
//
// The bounds know the profile alone: bandwidths of wires, how many a GPU and a node have, and how many bytes
// any algorithm must move over a cut. No algorithm, ring, protocol or calibration enters; efficiencies above
// the wire, which some fits have, are taken as 1.

#include "sim/study/bench/narrowest_cut.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "sim/study/bench/collective_table.h"
#include "sim/study/bench/measured_tables.h"
#include "tests/support/scenarios.h"

namespace lockstep::narrowest_cut_test {

constexpr std::array all_ops{CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                             CollectiveOp::broadcast,  CollectiveOp::reduce,     CollectiveOp::all_to_all,
                             CollectiveOp::send_recv,  CollectiveOp::gather,     CollectiveOp::scatter};

double wires_of_node(const MachineSpec& machine) {
  double sum = 0;
  for (const NicSpec& nic : machine.nics) sum += static_cast<double>(nic.link.bandwidth.count());
  return sum;
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
        INFO(nodes, " x ", machine, " ", collective_op_name(op), ", ", row.algorithm);
        CHECK(row.time >= narrowest_cut_time(scenario.cluster, op, row.size));
      }
    }
}

// Times are printed to three digits.
TEST_CASE("No healthy measured table is faster than its machine's narrowest cut") {
  std::map<std::string, ClusterSpec> clusters;
  for (const MeasuredTable& table :
       read_measured_tables(LOCKSTEP_SOURCE_DIR "/validate/measurements/nccl/index.json")) {
    if (!table.healthy)
      continue;
    const auto [known, is_new] = clusters.try_emplace(table.machine);
    if (is_new)
      known->second = load_collective_setting({.machine = table.machine}, shipped_profiles()).cluster;
    ClusterSpec cluster = known->second;
    cluster.nodes = table.nodes;
    cluster.gpus_per_node = table.gpus_per_node;
    for (const MeasuredRow& row : table.rows) {
      INFO(table.id, ":", row.line, ": ", row.size.count(), " B");
      CHECK(row.time.in_seconds() >= 0.995 * narrowest_cut_time(cluster, table.op, row.size).in_seconds());
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
