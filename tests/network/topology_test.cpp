#include "sim/network/topology.h"

#include <doctest/doctest.h>

#include <set>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "tests/support/clusters.h"

namespace lockstep::topology_test {

const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(100), Duration::nanoseconds(500));
const LinkSpec nic_link = wire(LinkClass::network, gigabytes_per_second(10), Duration::microseconds(2));

MachineSpec two_gpus_one_nic() {
  MachineSpec machine = switch_machine(2, nvlink);
  machine.nics = {{nic_link, {0, 1}}};
  return machine;
}

TEST_CASE("A hop inside a node crosses the node's own links") {
  const TestCluster cluster(two_gpus_one_nic(), 3);
  CHECK(cluster.links_between(4, 5) ==
        std::vector<std::string>{"node2: gpu0 -> nvswitch", "node2: nvswitch -> gpu1"});
}

// Latencies lie on links: two NVLinks of 500 ns.
TEST_CASE("A hop's latency is the sum of its links'") {
  const TestCluster cluster(two_gpus_one_nic(), 1);
  CHECK(cluster.topology().hop(Rank{0}, Rank{1}, 0).latency == nvlink.latency * 2);
}

TEST_CASE("A hop between nodes leaves by a NIC and enters by one, and pays the wire once") {
  const TestCluster cluster(two_gpus_one_nic(), 2);
  CHECK(cluster.links_between(1, 2) == std::vector<std::string>{"node0: nic0 out", "node1: nic0 in"});
  const HopRoute hop = cluster.topology().hop(Rank{1}, Rank{2}, 0);
  CHECK(hop.latency == nic_link.latency);
  CHECK(hop.slowest_class == LinkClass::network);
}

TEST_CASE("A route crosses each link at most once") {
  MachineSpec machine = mesh_machine(dgx1v_matrix(), nvlink);
  machine.host = pcie_machine(8, {{0, 1}, {2, 3}, {4, 5}, {6, 7}}).host;
  for (const std::int64_t gpu : {0, 2, 4, 6}) machine.nics.push_back({nic_link, {gpu, gpu + 1}});
  const TestCluster cluster(machine, 2);
  for (std::uint32_t from = 0; from < 16; ++from)
    for (std::uint32_t to = 0; to < 16; ++to)
      for (std::uint32_t nic = 0; nic < 4; ++nic) {
        const HopRoute hop = cluster.topology().hop(Rank{from}, Rank{to}, nic);
        CHECK(std::set<LinkId>(hop.links.begin(), hop.links.end()).size() == hop.links.size());
      }
}

// A GPU far from the NIC hands over by NVLink to the one beside it (PXN) instead of crossing the sockets.
TEST_CASE("A message to a far NIC goes by NVLink to the GPU beside it") {
  MachineSpec machine = mesh_machine(dgx1v_matrix(), nvlink);
  machine.host = pcie_machine(8, {{0, 1}, {2, 3}, {4, 5}, {6, 7}}).host;
  machine.nics = {{nic_link, {0, 1}}};
  const TestCluster cluster(machine, 2);
  for (const std::string& link : cluster.links_between(4, 8 + 4)) {
    INFO(link);
    CHECK(link.find("socket0 -> socket1") == std::string::npos);
    CHECK(link.find("socket1 -> socket0") == std::string::npos);
  }
}

// Of eight GPUs and NICs below four switches, four are in use.
TEST_CASE("Where a part of a machine is in use, a message goes through the GPU whose own NIC it leaves by") {
  MachineSpec machine = switch_machine(8, nvlink);
  machine.host = pcie_machine(8, {{0, 1}, {2, 3}, {4, 5}, {6, 7}}).host;
  for (const std::int64_t gpu : {0, 1, 2, 3, 4, 5, 6, 7}) machine.nics.push_back({nic_link, {gpu}});
  const FabricSpec fabric;
  const Calibration calibration;
  const Topology topology({.machine = machine,
                           .fabric = fabric,
                           .calibration = calibration,
                           .nodes = 2,
                           .gpus_per_node = 4,
                           .slowdown = {}});
  for (const std::uint32_t nic : {2u, 3u}) {
    const HopRoute hop = topology.hop(Rank{0}, Rank{4 + nic}, nic);
    REQUIRE(hop.links.size() > 2);
    CHECK(topology.link_name(hop.links[0]) == "node0: gpu0 -> nvswitch");
    CHECK(topology.link_name(hop.links[1]) == "node0: nvswitch -> gpu" + std::to_string(nic));
  }
}

TEST_CASE("NICs that are as close to two GPUs have one each") {
  MachineSpec machine = switch_machine(4, nvlink);
  machine.host = pcie_machine(4, {{0, 1}, {2, 3}}).host;
  machine.nics = {{nic_link, {0, 1}}, {nic_link, {0, 1}}, {nic_link, {2, 3}}, {nic_link, {2, 3}}};
  const TestCluster cluster(machine, 2);
  for (const std::uint32_t nic : {0u, 1u}) {
    const std::vector<std::string> links = cluster.links_between(3, 4 + nic, nic);
    REQUIRE(links.size() > 2);
    CHECK(links[1] == "node0: nvswitch -> gpu" + std::to_string(nic));
  }
}

TEST_CASE("Efficiency takes its part of every wire of its class and of no other") {
  Calibration calibration;
  calibration.efficiency = {{LinkClass::network, Ratio::percent(80)}};
  const TestCluster cluster(two_gpus_one_nic(), 2, {}, calibration);
  const Topology& topology = cluster.topology();
  for (const LinkId link : topology.links().ids()) {
    if (topology.is_compute(link))
      continue;
    const bool is_network = topology.links()[link].link_class == LinkClass::network;
    CHECK(topology.links()[link].bandwidth ==
          (is_network ? Bandwidth{nic_link.bandwidth.count() / 10 * 8} : nvlink.bandwidth));
  }
}

TEST_CASE("Every rank has a compute link of its own, slower for a straggler") {
  const MachineSpec machine = switch_machine(4, nvlink);
  const FabricSpec fabric;
  const Calibration calibration;
  const Topology topology(
      {.machine = machine,
       .fabric = fabric,
       .calibration = calibration,
       .nodes = 1,
       .gpus_per_node = 4,
       .slowdown = {Ratio::one(), Ratio::percent(125), Ratio::one(), Ratio::percent(200)}});
  CHECK(topology.links()[topology.compute_link(Rank{0})].bandwidth == full_compute_rate);
  CHECK(topology.links()[topology.compute_link(Rank{1})].bandwidth ==
        Bandwidth{full_compute_rate.count() / 5 * 4});
  CHECK(topology.links()[topology.compute_link(Rank{3})].bandwidth == share(full_compute_rate, 2));
}

TEST_CASE("Where few channels are forced, all that a rank sends crosses a link of theirs first") {
  const Bandwidth limit = gigabytes_per_second(7);
  const TestCluster cluster(two_gpus_one_nic(), 2, {}, {}, {.sending_limit = limit});
  CHECK(cluster.links_between(1, 0) ==
        std::vector<std::string>{"rank 1 channels", "node0: gpu1 -> nvswitch", "node0: nvswitch -> gpu0"});
  CHECK(cluster.links_between(3, 0).front() == "rank 3 channels");
  CHECK(cluster.topology().links()[cluster.topology().hop(Rank{3}, Rank{0}, 0).links.front()].bandwidth ==
        limit);
}

// Ranks 0-3 are the GPUs of two sockets; ranks 4 and 5 the memory of socket 0 and of socket 1.
TEST_CASE("A GPU reaches host memory over its PCIe switch, and the other socket's over the link between") {
  const TestCluster cluster(pcie_machine(4, {{0, 1}, {2, 3}}), 1, {}, {}, {.hosts = {{0, 0}, {0, 1}}});
  CHECK(cluster.links_between(1, 4) ==
        std::vector<std::string>{"node0: gpu1 -> pcie_switch0", "node0: pcie_switch0 -> socket0"});
  CHECK(cluster.links_between(4, 1) ==
        std::vector<std::string>{"node0: socket0 -> pcie_switch0", "node0: pcie_switch0 -> gpu1"});
  CHECK(cluster.links_between(1, 5).back() == "node0: socket0 -> socket1");
  CHECK(cluster.links_between(4, 4).empty());
}

// Two nodes of one GPU and a third machine without: ranks 2 and 3 are the hosts of node 0 and of the server.
TEST_CASE("A machine that only serves is reached over its NIC and has no GPU among the ranks") {
  MachineSpec machine = pcie_machine(1, {{0}});
  machine.nics = {{.link = nic_link, .gpus = {0}}};
  const TestCluster cluster(machine, 2, {}, {}, {.hosts = {{0, 0}, {2, 0}}});
  CHECK(cluster.topology().ranks() == 2);
  CHECK(cluster.topology().machines() == 3);
  CHECK(cluster.links_between(2, 3) ==
        std::vector<std::string>{"node0: socket0 -> pcie_switch0", "node0: pcie_switch0 -> nic0",
                                 "node0: nic0 out", "node2: nic0 in", "node2: nic0 -> pcie_switch0",
                                 "node2: pcie_switch0 -> socket0"});
  CHECK(cluster.topology().link_name(cluster.topology().compute_link(Rank{3})) == "host 1 memory");
}

TEST_CASE("Without a modelled way to host memory a copy there crosses nothing") {
  const TestCluster cluster(switch_machine(2, nvlink), 1, {}, {}, {.hosts = {{0, 0}}});
  CHECK(cluster.links_between(1, 2).empty());
}

TEST_CASE("Every link has a name of its own") {
  for (const auto& [kind, fabric_kind] : Registry<FabricKind>::all()) {
    if (kind == "torus" || kind == "dragonfly" || kind == "graph")
      continue;  // they need a shape of their own
    FabricSpec fabric;
    fabric.kind = kind;
    fabric.ports_per_leaf = 2;
    const TestCluster cluster(two_gpus_one_nic(), 4, fabric, {},
                              {.sending_limit = nvlink.bandwidth, .hosts = {{1, 0}, {4, 0}}});
    std::set<std::string> names;
    for (const LinkId link : cluster.topology().links().ids())
      names.insert(cluster.topology().link_name(link));
    CHECK(names.size() == cluster.topology().links().size());
  }
}

// A ring that comes in by NIC 1 and leaves by NIC 0.
TEST_CASE("A message may leave by another NIC than it comes in by") {
  MachineSpec machine = switch_machine(2, nvlink);
  machine.nics = {{nic_link, {0}}, {nic_link, {1}}};
  const TestCluster cluster(machine, 2);
  const HopRoute hop =
      cluster.topology().hop({.source = Rank{0}, .destination = Rank{3}, .channel = 1, .exit = 0});
  std::vector<std::string> names;
  for (const LinkId link : hop.links) names.push_back(cluster.topology().link_name(link));
  CHECK(names == std::vector<std::string>{"node0: nic0 out", "node1: nic1 in"});
}

// The name is too long to stand inside the string itself.
TEST_CASE("A topology outlives all that it was made of") {
  const auto make = [] {
    const MachineSpec machine = two_gpus_one_nic();
    FabricSpec fabric;
    fabric.name = "a fabric whose name is kept on the heap and not beside it";
    fabric.kind = "fat_tree";
    fabric.ports_per_leaf = 1;
    fabric.hop_latency = Duration::nanoseconds(300);
    const Calibration calibration;
    return Topology({.machine = machine,
                     .fabric = fabric,
                     .calibration = calibration,
                     .nodes = 2,
                     .gpus_per_node = 2,
                     .slowdown = {}});
  };
  const Topology topology = make();
  CHECK(topology.fabric().name == "a fabric whose name is kept on the heap and not beside it");
  // From leaf to leaf: the wire, and three switches.
  CHECK(topology.hop(Rank{0}, Rank{2}, 0).latency == nic_link.latency + Duration::nanoseconds(3 * 300));
}

TEST_CASE("A share of less than one byte per second is refused by the name of the link") {
  MachineSpec machine = two_gpus_one_nic();
  machine.nics.front().link.bandwidth = Bandwidth{3};
  const TestCluster cluster(machine, 2);
  const LinkId out = cluster.topology().hop(Rank{0}, Rank{2}, 0).links.back();
  CHECK(cluster.topology().share_of(out, 3) == Bandwidth{1});
  CHECK_THROWS_WITH_AS(cluster.topology().share_of(out, 4), doctest::Contains("node1: nic0 in"), ConfigError);
}

TEST_CASE("More links than have numbers are refused") {
  const MachineSpec machine = mesh_machine(std::vector(100, std::vector<std::int64_t>(100, 1)), nvlink);
  const FabricSpec fabric;
  const Calibration calibration;
  CHECK_THROWS_AS(Topology({.machine = machine,
                            .fabric = fabric,
                            .calibration = calibration,
                            .nodes = 1'000'000,
                            .gpus_per_node = 100,
                            .slowdown = {}}),
                  ConfigError);
}

TEST_CASE("A fabric kind that is not registered is a mistake of load") {
  FabricSpec fabric;
  fabric.kind = "no such kind";
  CHECK_THROWS_AS(TestCluster(two_gpus_one_nic(), 2, fabric), InternalError);
}

}  // namespace lockstep::topology_test
