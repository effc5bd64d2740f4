// NVLS in the nodes, trees between them: the loads of both, in one coupled transfer.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/collectives/double_binary_tree.h"
#include "tests/support/clusters.h"
#include "tests/support/collective_run.h"

namespace lockstep::nvls_tree_test {

const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(400), Duration::nanoseconds(350));
const LinkSpec nic_link = wire(LinkClass::network, gigabytes_per_second(20), Duration::microseconds(3));
constexpr std::int64_t kib = 1024;

MachineSpec machine_of(std::int64_t gpus, std::int64_t nics) {
  MachineSpec machine = switch_machine(gpus, nvlink);
  for (std::int64_t nic = 0; nic < nics; ++nic) machine.nics.push_back({nic_link, {nic}});
  return machine;
}

Communicator with_multicast(Communicator world) {
  world.switch_multicasts = true;
  return world;
}

CollectiveRun run_nvls_tree(const TestCluster& cluster, std::int64_t bytes,
                            Fidelity fidelity = Fidelity::flow) {
  return run_collective(cluster.topology(), with_multicast(cluster.world()), cluster.calibration(),
                        {.algorithm = "nvls_tree", .bytes = Bytes{bytes}, .fidelity = fidelity});
}

TEST_CASE("An NVLS tree needs switches that multicast and two nodes of two GPUs") {
  const Collective& nvls_tree = *Registry<Collective>::find("nvls_tree");
  const TestCluster one(machine_of(4, 1), 1);
  const TestCluster two(machine_of(4, 1), 2);
  const TestCluster single_gpus(machine_of(1, 1), 2);
  CHECK(can_run(nvls_tree, CollectiveOp::all_reduce, with_multicast(two.world())));
  CHECK_FALSE(can_run(nvls_tree, CollectiveOp::all_reduce, two.world()));
  CHECK_FALSE(can_run(nvls_tree, CollectiveOp::all_reduce, with_multicast(one.world())));
  CHECK_FALSE(can_run(nvls_tree, CollectiveOp::all_reduce, with_multicast(single_gpus.world())));
  CHECK_FALSE(can_run(nvls_tree, CollectiveOp::all_gather, with_multicast(two.world())));
}

// Bytes of which every GPU's share of every tree of every channel is whole.
TEST_CASE("An NVLS tree loads the nodes' links as NVLS does and the NICs as the tree does") {
  for (const std::int64_t nodes : {2, 3, 4, 7})
    for (const std::int64_t channels : {1, 2, 4}) {
      const std::int64_t gpus = 4;
      const TestCluster cluster(machine_of(gpus, channels), nodes);
      const std::int64_t share = 9'999;
      const std::int64_t bytes = share * gpus * 2 * channels;
      for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
        const Topology& topology = cluster.topology();
        const auto carried = bytes_by_link(run_nvls_tree(cluster, bytes, fidelity), topology.links().size());
        for (const LinkId link : topology.links().ids()) {
          const std::string name = topology.link_name(link);
          INFO(name);
          if (name.find("nvswitch") != std::string::npos)
            CHECK(carried[link.index] == (gpus + 1) * bytes / gpus);
          for (std::uint32_t node = 0; node < cluster.world().nodes; ++node) {
            if (!name.starts_with("node" + std::to_string(node) + ": nic"))
              continue;
            std::int64_t neighbours = 0;
            for (const std::uint32_t tree : {0u, 1u}) {
              const TreeLinks links = tree_links(cluster.world().nodes, node, tree);
              neighbours += static_cast<std::int64_t>(links.children.size()) + (links.parent ? 1 : 0);
            }
            CHECK(carried[link.index] == neighbours * bytes / (2 * channels));
          }
        }
      }
    }
}

// Two nodes of g GPUs and one NIC. A unit is a GPU's share of a tree, S / 2g. In a node a link carries
// (g+1)/g S = 2 (g+1) units; on the NIC each node sends up one tree and down the other, S/2 each: 2 g units.
// A loop is read, goes up, down, and is written; the NIC is the slower link and moves all but one loop more. Of
// each GPU's share a loop has 64 KiB, or 128 from four such loops on, so that of a tree half of all GPUs' shares.
TEST_CASE("Between two nodes an NVLS tree takes its bytes on the NIC and a loop's way, to the picosecond") {
  struct Loop {
    std::int64_t per_tree;  // bytes
    std::int64_t of_tree;
  };
  const Duration in_node_cost = Duration::nanoseconds(800);
  const Duration across_cost = Duration::microseconds(5);
  Calibration calibration;
  calibration.protocols = {protocol_costing(in_node_cost, across_cost)};
  for (const std::int64_t gpus : {2, 4, 8})
    for (const auto& [per_tree, of_tree] : {Loop{800, 800}, Loop{gpus * 128 * kib, gpus * 32 * kib},
                                            Loop{gpus * 1024 * kib, gpus * 64 * kib}}) {
      const TestCluster cluster(machine_of(gpus, 1), 2, {}, calibration);
      const auto on_link = [&](std::int64_t units) {
        return time_to_move(Bytes{units}, share(nvlink.bandwidth, 2 * (gpus + 1)));
      };
      const auto on_nic = [&](std::int64_t units) {
        return time_to_move(Bytes{units}, share(nic_link.bandwidth, 2 * gpus));
      };
      const std::int64_t chunk = of_tree / gpus / 2;  // one way, while nothing comes down
      const Duration in_node = on_link(chunk) + nvlink.latency * 2 + in_node_cost;
      const Duration across = on_nic(chunk) + nic_link.latency + across_cost;
      INFO(gpus, " GPUs, ", per_tree, " bytes a tree");
      CHECK(run_nvls_tree(cluster, 2 * per_tree).time() ==
            (in_node + across) * 2 - on_nic(chunk) + on_nic(per_tree / gpus));
    }
}

// What the algorithm cannot use is the switch's. Of S a node's links carry (g+1)/g S, and 4/3 of that where it
// uses three quarters of them; the NICs carry what they carried. A share is counted by hundredths.
TEST_CASE("An NVLS tree's efficiency is that of the links inside a node") {
  const std::int64_t gpus = 4;
  const std::int64_t bytes = 3'000'000 * gpus * 2;
  Calibration calibration;
  calibration.protocols = {protocol_costing(Duration::zero(), Duration::zero())};
  const auto carried_at = [&](Ratio efficiency) {
    calibration.algorithms = {{.name = "nvls_tree", .launch = {}, .efficiency = efficiency}};
    const TestCluster cluster(machine_of(gpus, 1), 2, {}, calibration);
    return bytes_by_link(run_nvls_tree(cluster, bytes), cluster.topology().links().size());
  };
  const auto whole = carried_at(Ratio::one());
  const auto three_quarters = carried_at(Ratio::percent(75));
  const TestCluster cluster(machine_of(gpus, 1), 2);
  for (const LinkId link : cluster.topology().links().ids()) {
    const std::string name = cluster.topology().link_name(link);
    INFO(name);
    const bool is_in_node = name.find("nvswitch") != std::string::npos;
    CHECK(three_quarters[link.index] == (is_in_node ? whole[link.index] / 3 * 4 : whole[link.index]));
  }
}

}  // namespace lockstep::nvls_tree_test
