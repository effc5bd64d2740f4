// Single switch, fat tree and rail-optimised fabrics: what lies between two ports.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/clusters.h"

namespace lockstep::leaf_spine_test {

const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(100));
const LinkSpec nic_link = wire(LinkClass::network, gigabytes_per_second(10), Duration::microseconds(2));
constexpr Duration hop_latency = Duration::nanoseconds(300);

MachineSpec machine_with_nics(std::int64_t nics) {
  MachineSpec machine = switch_machine(4, nvlink);
  for (std::int64_t nic = 0; nic < nics; ++nic) machine.nics.push_back({nic_link, {nic}});
  return machine;
}

FabricSpec fabric_of(const std::string& kind, std::int64_t ports_per_leaf, double oversubscription = 1) {
  FabricSpec fabric;
  fabric.kind = kind;
  fabric.ports_per_leaf = ports_per_leaf;
  fabric.oversubscription = oversubscription;
  fabric.hop_latency = hop_latency;
  return fabric;
}

Bandwidth bandwidth_named(const TestCluster& cluster, const std::string& name) {
  for (const LinkId link : cluster.topology().links().ids())
    if (cluster.topology().link_name(link) == name)
      return cluster.topology().links()[link].bandwidth;
  return Bandwidth{0};
}

TEST_CASE("Through a single switch a message crosses two ports and one switch") {
  const TestCluster cluster(machine_with_nics(1), 4, fabric_of("single_switch", 32));
  CHECK(cluster.links_between(0, 12) == std::vector<std::string>{"node0: nic0 out", "node3: nic0 in"});
  CHECK(cluster.topology().hop(Rank{0}, Rank{12}, 0).latency == nic_link.latency + hop_latency);
}

// Two nodes of one NIC below a leaf of two ports.
TEST_CASE("In a fat tree neighbours meet in their leaf and others in the spine") {
  const TestCluster cluster(machine_with_nics(1), 4, fabric_of("fat_tree", 2));
  CHECK(cluster.links_between(0, 4) == std::vector<std::string>{"node0: nic0 out", "node1: nic0 in"});
  CHECK(cluster.links_between(0, 8) ==
        std::vector<std::string>{"node0: nic0 out", "leaf0 -> spine", "spine -> leaf1", "node2: nic0 in"});
  CHECK(cluster.topology().hop(Rank{0}, Rank{4}, 0).latency == nic_link.latency + hop_latency);
  CHECK(cluster.topology().hop(Rank{0}, Rank{8}, 0).latency == nic_link.latency + hop_latency * 3);
}

TEST_CASE("Without oversubscription a leaf's way up carries all its ports") {
  const TestCluster cluster(machine_with_nics(1), 4, fabric_of("fat_tree", 2));
  CHECK(bandwidth_named(cluster, "leaf0 -> spine") == nic_link.bandwidth * 2);
  CHECK(bandwidth_named(cluster, "spine -> leaf1") == nic_link.bandwidth * 2);
}

TEST_CASE("Oversubscription narrows every leaf's way up by its factor") {
  for (const std::int64_t factor : {2, 4}) {
    const TestCluster cluster(machine_with_nics(1), 4, fabric_of("fat_tree", 2, static_cast<double>(factor)));
    CHECK(bandwidth_named(cluster, "leaf0 -> spine") == share(nic_link.bandwidth * 2, factor));
  }
}

TEST_CASE("A cluster that fits below one leaf has no spine") {
  const TestCluster cluster(machine_with_nics(1), 2, fabric_of("fat_tree", 2));
  CHECK(bandwidth_named(cluster, "leaf0 -> spine") == Bandwidth{0});
  CHECK(cluster.links_between(0, 4) == std::vector<std::string>{"node0: nic0 out", "node1: nic0 in"});
}

// NIC i of every node is on rail i; with two ports a leaf, rail 1 of nodes 0 and 1 is leaf 2 x 1.
TEST_CASE("On rails a NIC meets its own kind and other nodes' only through the spine") {
  const TestCluster cluster(machine_with_nics(2), 4, fabric_of("rail_optimised", 2));
  CHECK(cluster.links_between(0, 4, 1) == std::vector<std::string>{"node0: nic1 out", "node1: nic1 in"});
  const auto far = cluster.links_between(0, 8, 1);
  CHECK(std::count(far.begin(), far.end(), "leaf2 -> spine") == 1);
  CHECK(std::count(far.begin(), far.end(), "spine -> leaf3") == 1);
}

TEST_CASE("Rails do not share leaves") {
  const TestCluster cluster(machine_with_nics(2), 4, fabric_of("rail_optimised", 2));
  const auto of_rail = [&](std::uint32_t nic) {
    std::vector<std::string> leaves;
    for (const std::string& link : cluster.links_between(0, 8, nic))
      if (link.find("leaf") != std::string::npos)
        leaves.push_back(link);
    return leaves;
  };
  for (const std::string& link : of_rail(0)) {
    const auto other = of_rail(1);
    CHECK(std::count(other.begin(), other.end(), link) == 0);
  }
}

}  // namespace lockstep::leaf_spine_test
