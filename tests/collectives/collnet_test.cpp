// In-network reduction: a NIC carries its part once each way, whatever the number of nodes.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/clusters.h"
#include "tests/support/collective_run.h"

namespace lockstep::collnet_test {

const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(400), Duration::nanoseconds(350));
const LinkSpec nic_link = wire(LinkClass::network, gigabytes_per_second(20), Duration::microseconds(3));
constexpr std::int64_t chunk_of_channel = 128 * 1024;

MachineSpec machine_of(std::int64_t gpus, std::int64_t nics) {
  MachineSpec machine = switch_machine(gpus, nvlink);
  for (std::int64_t nic = 0; nic < nics; ++nic) machine.nics.push_back({nic_link, {nic}});
  return machine;
}

CollectiveRun run_collnet(const TestCluster& cluster, std::int64_t bytes,
                          Fidelity fidelity = Fidelity::flow) {
  return run_collective(cluster.topology(), cluster.world(), cluster.calibration(),
                        {.algorithm = "collnet", .bytes = Bytes{bytes}, .fidelity = fidelity});
}

TEST_CASE("CollNet needs a network between nodes whose switches add") {
  const Collective& collnet = *Registry<Collective>::find("collnet");
  const TestCluster one(machine_of(4, 1), 1, adding_switch());
  const TestCluster two(machine_of(4, 1), 2, adding_switch());
  const TestCluster plain(machine_of(4, 1), 2);
  CHECK_FALSE(can_run(collnet, CollectiveOp::all_reduce, one.world()));
  CHECK_FALSE(can_run(collnet, CollectiveOp::all_reduce, plain.world()));
  CHECK(collnet.lacks(plain.world()).find("\"in_network_reduction\": true") != std::string::npos);
  CHECK(can_run(collnet, CollectiveOp::all_reduce, two.world()));
  CHECK_FALSE(can_run(collnet, CollectiveOp::all_gather, two.world()));
}

// The ranks scatter and gather (g-1)/g of the bytes in the node, and each of C NICs sends and receives S / C.
TEST_CASE("CollNet sends each part once through each NIC") {
  for (const std::int64_t nodes : {2, 3, 8})
    for (const std::int64_t channels : {1, 2, 4})
      for (const std::int64_t gpus : {4, 8}) {
        const TestCluster cluster(machine_of(gpus, channels), nodes);
        const std::int64_t share = 9'999;
        const std::int64_t bytes = share * gpus * channels;
        for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
          const Topology& topology = cluster.topology();
          const auto carried = bytes_by_link(run_collnet(cluster, bytes, fidelity), topology.links().size());
          for (const LinkId link : topology.links().ids()) {
            const std::string name = topology.link_name(link);
            INFO(name);
            if (name.find("nvswitch") != std::string::npos)
              CHECK(carried[link.index] == 2 * (gpus - 1) * bytes / gpus);
            if (name.find(": nic") != std::string::npos)
              CHECK(carried[link.index] == bytes / channels);
          }
        }
      }
}

// A unit is a GPU's share S / g. In a node a link carries 2 (g-1) units, a NIC g. A chunk is scattered, goes
// up, comes down and is gathered; the NIC is the slower link and moves all but one chunk more. No term names
// nodes.
TEST_CASE("CollNet takes its bytes on the NIC and a chunk's way on any number of nodes, to the picosecond") {
  const Duration in_node_cost = Duration::nanoseconds(800);
  const Duration across_cost = Duration::microseconds(5);
  Calibration calibration;
  calibration.protocols = {protocol_costing(in_node_cost, across_cost)};
  for (const std::int64_t nodes : {2, 3, 8})
    for (const std::int64_t gpus : {1, 2, 4, 8})
      for (const std::int64_t bytes : {std::int64_t{800}, chunk_of_channel, 100 * chunk_of_channel}) {
        const TestCluster cluster(machine_of(gpus, 1), nodes, {}, calibration);
        const auto on_nic = [&](std::int64_t units) {
          return time_to_move(Bytes{units}, share(nic_link.bandwidth, gpus));
        };
        const std::int64_t chunk = std::min(bytes, chunk_of_channel) / gpus;
        const Duration across = on_nic(chunk) + nic_link.latency + across_cost;
        Duration in_node;
        if (gpus > 1)
          in_node = time_to_move(Bytes{chunk}, share(nvlink.bandwidth, 2 * (gpus - 1))) + nvlink.latency * 2 +
                    in_node_cost;
        INFO(nodes, " x ", gpus, ", ", bytes, " bytes");
        CHECK(run_collnet(cluster, bytes).time() ==
              (in_node + across) * 2 - on_nic(chunk) + on_nic(bytes / gpus));
      }
}

}  // namespace lockstep::collnet_test
