// Paths to routes: links, multiplicities, latencies, reservations.

#include "sim/network/routing.h"

#include <doctest/doctest.h>

#include <array>

#include "sim/base/error.h"
#include "sim/plan/plan_writer.h"
#include "sim/run/symmetry.h"
#include "tests/support/clusters.h"

namespace lockstep::routing_test {

const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(100), Duration::nanoseconds(500));
const LinkSpec nic_link = wire(LinkClass::network, gigabytes_per_second(10), Duration::microseconds(2));

RouteTable routes_of(const TestCluster& cluster, const Plan& plan, const Symmetry& symmetry) {
  return route_paths({.plan = plan,
                      .topology = cluster.topology(),
                      .world = cluster.world(),
                      .calibration = cluster.calibration(),
                      .symmetry = symmetry});
}

Plan plan_with_path(const Path& path) {
  Plan plan;
  plan.paths.push_back(path);
  return plan;
}

// A coupled transfer over the rings of `world`, each chain going round its ring once.
Plan plan_of_rings(const Communicator& world) {
  Plan plan = plan_with_path({.kind = PathKind::coupled, .traffic = TrafficId{0}});
  plan.traffics.push_back({.flows = ring_flows(world), .rounds = {}});
  return plan;
}

TEST_CASE("A kernel runs on its rank's own compute link") {
  const TestCluster cluster(switch_machine(2, nvlink), 1);
  const Plan plan = plan_with_path({.kind = PathKind::kernel, .rank = Rank{1}});
  const RouteTable routes = routes_of(cluster, plan, no_symmetry(cluster.topology()));
  REQUIRE(routes.uses(RouteId{0}).size() == 1);
  CHECK(routes.uses(RouteId{0})[0].link == cluster.topology().compute_link(Rank{1}));
  CHECK(routes.latency(RouteId{0}) == Duration::zero());
}

TEST_CASE("A hop crosses its links once each and pays their latency") {
  const TestCluster cluster(switch_machine(4, nvlink), 1);
  const Plan plan = plan_with_path({.kind = PathKind::hop, .rank = Rank{0}, .destination = Rank{1}});
  const RouteTable routes = routes_of(cluster, plan, no_symmetry(cluster.topology()));
  CHECK(routes.uses(RouteId{0}).size() == 2);
  for (const LinkUse& use : routes.uses(RouteId{0})) CHECK(use.multiplicity == 1);
  CHECK(routes.latency(RouteId{0}) == nvlink.latency * 2);
}

TEST_CASE("A protocol's step cost comes on top of the wire's latency, by the slowest class of the hop") {
  Calibration calibration;
  calibration.protocols = {protocol_costing(Duration::microseconds(3), Duration::microseconds(7))};
  MachineSpec machine = switch_machine(2, nvlink);
  machine.nics = {{nic_link, {0, 1}}};
  const TestCluster cluster(machine, 2, {}, calibration);
  Plan plan = plan_with_path({.kind = PathKind::hop, .rank = Rank{0}, .destination = Rank{1}});
  plan.paths.push_back({.kind = PathKind::hop, .rank = Rank{1}, .destination = Rank{2}});
  const RouteTable routes = routes_of(cluster, plan, no_symmetry(cluster.topology()));
  CHECK(routes.latency(RouteId{0}) == nvlink.latency * 2 + Duration::microseconds(3));
  CHECK(routes.latency(RouteId{1}) == nic_link.latency + Duration::microseconds(7));
}

// Over one switch of n ranks every up and down link is crossed by one hop of the ring.
TEST_CASE("A coupled transfer crosses every link of its rings as often as their hops do") {
  const std::int64_t gpus = 4;
  const TestCluster cluster(switch_machine(gpus, nvlink), 1);
  const Plan plan = plan_of_rings(cluster.world());
  const RouteTable routes = routes_of(cluster, plan, no_symmetry(cluster.topology()));
  CHECK(routes.uses(RouteId{0}).size() == static_cast<std::size_t>(2 * gpus));
  for (const LinkUse& use : routes.uses(RouteId{0})) CHECK(use.multiplicity == 1);
}

TEST_CASE("Folded, a coupled transfer keeps one link of each class and its load") {
  const TestCluster cluster(switch_machine(8, nvlink), 1);
  const std::vector<std::int64_t> alike(8, 0);
  const Symmetry symmetry = find_symmetry(cluster.topology(), cluster.world(), Fidelity::flow, alike);
  const RouteTable routes = routes_of(cluster, plan_of_rings(cluster.world()), symmetry);
  REQUIRE(routes.uses(RouteId{0}).size() == 1);
  CHECK(routes.uses(RouteId{0})[0].multiplicity == 1);
}

// k steps take k hops, each the latency of two links.
TEST_CASE("Transfers of one traffic have its links in common and differ in their chains") {
  const TestCluster cluster(switch_machine(4, nvlink), 1);
  Plan plan = plan_of_rings(cluster.world());
  plan.traffics[TrafficId{0}].rounds = {ring_flows(cluster.world())};
  plan.paths[PathId{0}].shape.chain_steps = 1;
  plan.paths.push_back(plan.paths[PathId{0}]);
  plan.paths[PathId{1}].shape.chain_steps = 6;
  const RouteTable routes = routes_of(cluster, plan, no_symmetry(cluster.topology()));
  CHECK(routes.uses(RouteId{0}).data() == routes.uses(RouteId{1}).data());
  CHECK(routes.uses(RouteId{0}).size() == routes.uses(RouteId{1}).size());
  CHECK(routes.latency(RouteId{0}) == nvlink.latency * 2);
  CHECK(routes.latency(RouteId{1}) == nvlink.latency * 2 * 6);
}

// n - 1 ring hops inside a node and one out of it: the NIC is crossed by one hop of each ring that uses it.
TEST_CASE("Crossings count the hops of all rings over each link") {
  MachineSpec machine = switch_machine(4, nvlink);
  machine.nics = {{nic_link, {0, 1, 2, 3}}};
  const TestCluster cluster(machine, 3);
  const auto crossings = count_crossings(cluster.topology(), ring_flows(cluster.world()));
  for (const LinkId link : cluster.topology().links().ids()) {
    if (cluster.topology().is_compute(link))
      CHECK(crossings[link.index] == 0);
    else if (cluster.topology().links()[link].link_class == LinkClass::network)
      CHECK(crossings[link.index] == cluster.world().rings.size());
  }
}

// A message of 1000 bytes takes 2 us of the core, half of it left to others at a share of a half; it waits 4
// us, of which the share's half counts: 1 part in 3. A hop says the same as the chain it is a step of.
TEST_CASE("A message weighs less the longer it waits for a core than it needs it") {
  Calibration calibration;
  calibration.core_time_per_byte_ps = 2'000;
  calibration.core_share = Ratio::percent(50);
  const auto weights = [&](Duration wait) {
    calibration.core_wait = wait;
    MachineSpec machine = switch_machine(1, nvlink);
    machine.nics = {{nic_link, {0}}};
    const TestCluster cluster(machine, 2, {}, calibration);
    Plan plan = plan_of_rings(cluster.world());
    plan.paths[PathId{0}].shape = {.bytes_per_hop = 2'000, .bytes_per_step = 1'000, .chain_steps = 2};
    plan.paths.push_back(
        {.kind = PathKind::hop, .rank = Rank{0}, .destination = Rank{1}, .shape = {.bytes_per_step = 1'000}});
    plan.paths.push_back({.kind = PathKind::kernel, .rank = Rank{0}});
    const RouteTable routes = routes_of(cluster, plan, no_symmetry(cluster.topology()));
    return std::array{routes.weight(RouteId{0}), routes.weight(RouteId{1}), routes.weight(RouteId{2})};
  };
  // The kernel's own: for 2,000 ps of a byte's core time it gets as much, as its share is the other half.
  CHECK(weights(Duration::zero()) == std::array<std::int64_t, 3>{1, 1, 2'000});
  const auto [chain, hop, kernel] = weights(Duration::microseconds(4));
  CHECK(hop == chain);
  CHECK(kernel == 2'000 * 1'000);
  CHECK(chain == 334);  // a third of 1,000, rounded up
}

// 50 GB/s sent pass a memory of 1,000 GB/s three times: 15 % of it.
TEST_CASE(
    "A collective reserves an SM of its rank for every channel, and the memory that what it sends passes") {
  const TestCluster cluster(switch_machine(2, nvlink), 1);
  const Interference interference{.sms = 108, .is_by_bound = true, .memory = Bandwidth{1'000'000'000'000}};
  const Plan plan = plan_with_path({.kind = PathKind::kernel,
                                    .rank = Rank{0},
                                    .held = {.channels = 12, .sent = Bandwidth{50'000'000'000}}});
  const Symmetry symmetry = no_symmetry(cluster.topology());
  const RouteTable routes = route_paths({.plan = plan,
                                         .topology = cluster.topology(),
                                         .world = cluster.world(),
                                         .calibration = cluster.calibration(),
                                         .symmetry = symmetry,
                                         .interference = interference});
  CHECK(routes.uses(RouteId{0})[0].reserved_sms == 12);
  CHECK(routes.uses(RouteId{0})[0].reserved_memory == 150'000);
  CHECK(routes.interference() == interference);
}

TEST_CASE("A multiplicity beyond 32 bits is refused, not cut short") {
  constexpr std::int64_t most = 0xffffffff;
  CHECK(checked_multiplicity(most, 1) == most);
  CHECK_THROWS_AS(checked_multiplicity(most, 2), ConfigError);
  CHECK_THROWS_AS(checked_multiplicity(std::int64_t{1} << 62, std::int64_t{1} << 62), ConfigError);
}

// A million picoseconds of a core for a byte, 5,000 of which rank 0 sends: 5 x 10^9 is more than 2^32.
TEST_CASE("Core time of more bytes at once than can be counted is refused") {
  Calibration calibration;
  calibration.core_time_per_byte_ps = 1'000'000;
  const TestCluster cluster(switch_machine(2, nvlink), 1, {}, calibration);
  Plan plan = plan_with_path({.kind = PathKind::coupled, .traffic = TrafficId{0}});
  plan.traffics.push_back(
      {.flows = {{.source = Rank{0}, .destination = Rank{1}, .channel = 0, .weight = 5'000}}, .rounds = {}});
  CHECK_THROWS_AS(routes_of(cluster, plan, no_symmetry(cluster.topology())), ConfigError);
}

}  // namespace lockstep::routing_test
