// Which ranks and links are alike: small clusters whose classes can be named.

#include "sim/run/symmetry.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/support/clusters.h"

namespace lockstep::scenario_symmetry_test {

const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(100));
const LinkSpec nic_link = wire(LinkClass::network, gigabytes_per_second(10));

Symmetry symmetry_of(const TestCluster& cluster, Fidelity fidelity,
                     std::vector<std::int64_t> attributes = {}) {
  attributes.resize(cluster.topology().ranks());
  return find_symmetry(cluster.topology(), cluster.world(), fidelity, attributes);
}

TEST_CASE("Ranks round one switch are all alike") {
  const TestCluster cluster(switch_machine(8, nvlink), 1);
  CHECK(symmetry_of(cluster, Fidelity::step).roles.representatives.size() == 1);
  CHECK(symmetry_of(cluster, Fidelity::flow).roles.representatives.size() == 1);
}

// A rank that sends to another node differs from one that does not, whatever node it is on: with a ring in
// natural order over 4 GPUs a node there are at most 4 places, and every node repeats them.
TEST_CASE("Nodes repeat each other: a cluster has no more classes than a node has places") {
  MachineSpec machine = switch_machine(4, nvlink);
  machine.nics = {{nic_link, {0, 1, 2, 3}}};
  for (const std::int64_t nodes : {2, 5, 16}) {
    const TestCluster cluster(machine, nodes);
    const Symmetry symmetry = symmetry_of(cluster, Fidelity::step);
    CHECK(symmetry.roles.representatives.size() <= 4);
    for (std::uint32_t rank = 0; rank < cluster.topology().ranks(); ++rank)
      CHECK(symmetry.roles.representative(Rank{rank}) == symmetry.roles.representative(Rank{rank % 4}));
  }
}

// At distance d from a straggler on a ring of n ranks every rank hears of it after d steps.
TEST_CASE("A straggler tells every rank of its ring apart") {
  const TestCluster cluster(switch_machine(8, nvlink), 1);
  const Symmetry symmetry = symmetry_of(cluster, Fidelity::step, {0, 0, 0, 1});
  CHECK(symmetry.roles.representatives.size() == 8);
}

TEST_CASE("At fidelity flow a straggler is one class beside all others") {
  const TestCluster cluster(switch_machine(8, nvlink), 1);
  const Symmetry symmetry = symmetry_of(cluster, Fidelity::flow, {0, 0, 0, 1});
  CHECK(symmetry.roles.representatives == std::vector<Rank>{Rank{0}, Rank{3}});
}

TEST_CASE("A link is represented by one of its own kind") {
  MachineSpec machine = switch_machine(4, nvlink);
  machine.nics = {{nic_link, {0, 1, 2, 3}}};
  const TestCluster cluster(machine, 4);
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
    const Symmetry symmetry = symmetry_of(cluster, fidelity);
    for (const LinkId link : cluster.topology().links().ids()) {
      const LinkId stand_in = symmetry.representative(link);
      CHECK(symmetry.representative(stand_in) == stand_in);
      CHECK(cluster.topology().links()[stand_in].bandwidth == cluster.topology().links()[link].bandwidth);
      CHECK(cluster.topology().is_compute(stand_in) == cluster.topology().is_compute(link));
    }
  }
}

TEST_CASE("Alike links are crossed equally often") {
  MachineSpec machine = switch_machine(4, nvlink);
  machine.nics = {{nic_link, {0, 1}}, {nic_link, {2, 3}}};
  const TestCluster cluster(machine, 3);
  const auto crossings = count_crossings(cluster.topology(), ring_flows(cluster.world()));
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
    const Symmetry symmetry = symmetry_of(cluster, fidelity);
    for (const LinkId link : cluster.topology().links().ids())
      CHECK(crossings[link.index] == crossings[symmetry.representative(link).index]);
  }
}

TEST_CASE("Without folding everything stands for itself") {
  const TestCluster cluster(switch_machine(3, nvlink), 1);
  const Symmetry symmetry = no_symmetry(cluster.topology());
  CHECK(symmetry.roles.representatives.size() == 3);
  for (const LinkId link : cluster.topology().links().ids()) CHECK(symmetry.is_representative(link));
}

// Four GPUs round a switch look alike from their ring. Of two traffics one loads the links of rank 1 twice, the
// other those of rank 2: the busiest of either stood for all, and together they would meet on no link.
TEST_CASE("Where algorithms mix a link stands for those that each of them loads alike") {
  const TestCluster cluster(switch_machine(4, nvlink), 1);
  const Symmetry alike = symmetry_of(cluster, Fidelity::flow);
  IdVector<TrafficId, Traffic> traffics;
  for (const std::uint32_t busy : {1u, 2u})
    traffics.push_back(
        {.flows = {{.source = Rank{busy}, .destination = Rank{0}, .weight = 2}}, .rounds = {}});
  const Symmetry split = split_by_load(cluster.topology(), alike, traffics);
  CHECK(split.roles.representatives == alike.roles.representatives);
  const auto way_out = [&](std::uint32_t rank) {
    return cluster.topology().hop({.source = Rank{rank}, .destination = Rank{0}}).links.front();
  };
  const LinkId idle = cluster.topology().hop({.source = Rank{3}, .destination = Rank{0}}).links.front();
  CHECK(alike.representative(way_out(1)) == alike.representative(way_out(2)));
  CHECK(split.representative(way_out(1)) != split.representative(way_out(2)));
  CHECK(split.representative(way_out(1)) != split.representative(idle));
}

}  // namespace lockstep::scenario_symmetry_test
