#include "sim/network/ring_search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sim/network/routing.h"
#include "tests/support/clusters.h"
#include "tests/support/link_matrices.h"

namespace lockstep::ring_search_test {

// GPUs joined one to one, each with a NIC of its own below its PCIe switch, as in a node of MI300X.
MachineSpec mesh_with_nics(std::size_t gpus, Bandwidth link, Bandwidth nic) {
  MachineSpec machine = mesh_machine(complete_mesh(gpus), wire(LinkClass::nvlink, link));
  std::vector<std::vector<std::int64_t>> switches;
  for (std::int64_t gpu = 0; std::cmp_less(gpu, gpus); ++gpu) switches.push_back({gpu});
  machine.host = pcie_machine(static_cast<std::int64_t>(gpus), switches).host;
  machine.host.pcie->bandwidth = nic * 2;
  for (std::int64_t gpu = 0; std::cmp_less(gpu, gpus); ++gpu)
    machine.nics.push_back({wire(LinkClass::network, nic), {gpu}});
  return machine;
}

Bandwidth carried(const Communicator& world) {
  return world.ring_bandwidth * static_cast<std::int64_t>(world.rings.size());
}

TEST_CASE("On a mesh each cycle is a ring in both directions") {
  const TestCluster cluster(mesh_machine(dgx1v_matrix(), wire(LinkClass::nvlink, gigabytes_per_second(25))),
                            1);
  const auto crossings = count_crossings(cluster.topology(), ring_flows(cluster.world()));
  CHECK(cluster.world().rings.size() == 3 * 2);
  // Links between a pair are one link of their joint bandwidth: it is crossed once per NVLink.
  for (const LinkId link : cluster.topology().links().ids()) {
    if (cluster.topology().is_compute(link))
      continue;
    const std::int64_t nvlinks =
        cluster.topology().links()[link].bandwidth.count() / gigabytes_per_second(25).count();
    CHECK(crossings[link.index] == nvlinks);
  }
}

TEST_CASE("Round a switch one ring in natural order is enough") {
  const TestCluster cluster(switch_machine(4, wire(LinkClass::nvlink, gigabytes_per_second(100))), 1);
  REQUIRE(cluster.world().rings.size() == 1);
  CHECK(cluster.world().rings[0].local_order == std::vector<std::uint32_t>{0, 1, 2, 3});
}

TEST_CASE("Across nodes every NIC has a ring that enters beside it") {
  MachineSpec machine = switch_machine(8, wire(LinkClass::nvlink, gigabytes_per_second(100)));
  const LinkSpec link = wire(LinkClass::network, gigabytes_per_second(10));
  for (const std::int64_t gpu : {0, 2, 4, 6}) machine.nics.push_back({link, {gpu, gpu + 1}});
  const TestCluster cluster(machine, 2);
  REQUIRE(cluster.world().rings.size() == machine.nics.size());
  for (std::size_t ring = 0; ring < machine.nics.size(); ++ring)
    CHECK(cluster.world().rings[ring].local_order.front() == machine.nics[ring].gpus.front());
}

TEST_CASE("A ring can carry what its narrowest hop leaves to it") {
  MachineSpec machine = switch_machine(2, wire(LinkClass::nvlink, gigabytes_per_second(100)));
  machine.nics = {{wire(LinkClass::network, gigabytes_per_second(10)), {0, 1}}};
  CHECK(TestCluster(machine, 1).world().ring_bandwidth == gigabytes_per_second(100));
  CHECK(TestCluster(machine, 2).world().ring_bandwidth == gigabytes_per_second(10));
}

// Eight rings that keep to their NIC are closed inside the node: 8 x 8 hops on 8 x 7 links of one direction, so
// that some link has two. A path from NIC to NIC has 7 hops, and 8 of these use every link once: what a link
// carries is more than a NIC's, so that the NICs are what binds.
TEST_CASE(
    "On a complete mesh with a NIC a GPU all NICs are full, by rings that leave by another than they enter") {
  const Bandwidth link = gigabytes_per_second(52);
  const Bandwidth nic = gigabytes_per_second(45);
  const std::size_t gpus = 8;
  const TestCluster cluster(mesh_with_nics(gpus, link, nic), 2);
  const Communicator& world = cluster.world();
  CHECK(carried(world) == nic * static_cast<std::int64_t>(gpus));
  std::set<std::uint32_t> exits;
  for (std::uint32_t ring = 0; ring < world.rings.size(); ++ring) {
    CHECK(world.rings[ring].local_order.front() == ring);
    CHECK(world.rings[ring].local_order.back() == world.rings[ring].exit);
    exits.insert(world.rings[ring].exit);
  }
  CHECK(exits.size() == gpus);
  for (const std::uint32_t crossings : count_crossings(cluster.topology(), ring_flows(world)))
    CHECK(crossings <= 1);
}

// Every link bears all eight rings at once.
TEST_CASE("Rings keep to their NIC where the links between GPUs bear it") {
  const Bandwidth nic = gigabytes_per_second(45);
  const TestCluster cluster(mesh_with_nics(8, nic * 8, nic), 2);
  CHECK(carried(cluster.world()) == nic * 8);
  for (const RingPattern& ring : cluster.world().rings) CHECK(ring.exit == own_channel);
}

TEST_CASE("Round a switch rings keep to their NIC, whatever its links carry") {
  MachineSpec machine = switch_machine(4, wire(LinkClass::nvlink, gigabytes_per_second(1)));
  for (const std::int64_t gpu : {0, 1, 2, 3})
    machine.nics.push_back({wire(LinkClass::network, gigabytes_per_second(100)), {gpu}});
  const TestCluster cluster(machine, 2);
  for (const RingPattern& ring : cluster.world().rings) CHECK(ring.exit == own_channel);
}

// GPUs p and p + 4 of both nodes have NICs p and p + 4. On the one link between them two rings that keep to
// their NIC would meet in both directions; paths do not.
TEST_CASE("A group's rings change among the NICs beside its own GPUs") {
  const TestCluster cluster(mesh_with_nics(8, gigabytes_per_second(52), gigabytes_per_second(45)), 2);
  const GroupSet set =
      find_groups(cluster.topology(), {.machine = cluster.machine(), .calibration = cluster.calibration()},
                  Mesh({{"place", 4}, {"half", 4}}), {.name = "halves", .along = {"half"}});
  REQUIRE(set.groups.size() == 4);
  for (const Group& group : set.groups)
    for (const Flow& flow : in_cluster(group, ring_flows(set.shapes[group.shape]))) {
      CHECK(flow.channel % 4 == group.members.front().index);
      CHECK(flow.exit == (flow.channel + 4) % 8);
      const bool leaves_node = flow.source.index / 8 != flow.destination.index / 8;
      CHECK(leaves_node == (flow.source.index % 8 == flow.exit));
      CHECK(leaves_node == (flow.destination.index % 8 == flow.channel));
    }
}

GroupSet groups_of(const TestCluster& cluster, const Mesh& mesh, const std::string& axis) {
  return find_groups(cluster.topology(), {.machine = cluster.machine(), .calibration = cluster.calibration()},
                     mesh, {.name = axis, .along = {axis}});
}

// Nodes of four: pairs lie in a node, and every fourth rank is at the same GPU. Of three in a row some are on
// one node and some on the next, and every third rank is GPU 0 and 3 here and GPU 2 there.
TEST_CASE(
    "Only ranks at the same GPUs of every node form a communicator, and a mesh is of the whole cluster") {
  const TestCluster cluster(mesh_with_nics(4, gigabytes_per_second(50), gigabytes_per_second(25)), 2);
  CHECK(groups_of(cluster, Mesh({{"pair", 2}, {"rest", 4}}), "pair").groups.size() == 4);
  CHECK(groups_of(cluster, Mesh({{"node", 4}, {"across", 2}}), "across").groups.size() == 4);
  const TestCluster three(mesh_with_nics(4, gigabytes_per_second(50), gigabytes_per_second(25)), 3);
  CHECK_THROWS_AS(groups_of(three, Mesh({{"row", 3}, {"rest", 4}}), "row"), InternalError);
  CHECK_THROWS_AS(groups_of(three, Mesh({{"row", 3}, {"rest", 4}}), "rest"), InternalError);
  CHECK_THROWS_AS(groups_of(cluster, Mesh({{"node", 4}}), "node"), InternalError);
}

TEST_CASE("A mesh of 256 GPUs makes no more rings than a library has channels") {
  const TestCluster cluster(
      mesh_machine(complete_mesh(256), wire(LinkClass::nvlink, gigabytes_per_second(1))), 1);
  CHECK(cluster.world().rings.size() == 64);
  CHECK(cluster.world().channels() == 64);
  CHECK(cluster.world().mesh_cycles == MeshCycles{.found = 32, .bound = 32, .are_most = true});
}

TEST_CASE("What was found of cycles is told with what there may be") {
  CHECK(describe({.found = 3, .bound = 3, .are_most = true}) ==
        "3 cycles through the GPUs' links that share none, the most there are");
  CHECK(describe({.found = 32, .bound = 32, .are_most = true}) ==
        "32 cycles through the GPUs' links that share none, enough for all channels of a library");
  CHECK(describe({.found = 1, .bound = 4, .are_most = false}) ==
        "1 cycle through the GPUs' links that share none, the best that a search of limited length found; "
        "there "
        "may be up to 4");
}

}  // namespace lockstep::ring_search_test
