// Traffics to links and kinds of hop, and what chains of messages take on them.

#include "sim/network/traffic_route.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/error.h"
#include "sim/run/symmetry.h"
#include "tests/support/clusters.h"
#include "tests/support/property.h"

namespace lockstep::traffic_route_test {

const Bandwidth bandwidth = gigabytes_per_second(100);
const LinkSpec nvlink = wire(LinkClass::nvlink, bandwidth, Duration::nanoseconds(500));
const LinkSpec nic_link = wire(LinkClass::network, gigabytes_per_second(10), Duration::microseconds(2));

TrafficRoute routed(const TestCluster& cluster, const Traffic& traffic) {
  const Plan plan;
  const Symmetry symmetry = no_symmetry(cluster.topology());
  return route_traffic({.plan = plan,
                        .topology = cluster.topology(),
                        .world = cluster.world(),
                        .calibration = cluster.calibration(),
                        .symmetry = symmetry},
                       traffic);
}

// Every rank to the next; the first `ranks_in_round` of them are a round.
Traffic to_the_next(std::uint32_t ranks, std::uint32_t ranks_in_round) {
  Traffic traffic;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    traffic.flows.push_back({.source = Rank{rank}, .destination = Rank{(rank + 1) % ranks}});
  traffic.rounds = {{traffic.flows.begin(), traffic.flows.begin() + ranks_in_round}};
  return traffic;
}

// Hops that cost latency alone, each of its own kind.
TrafficRoute round_of(const std::vector<Duration>& latencies) {
  RoutedRound round;
  for (const Duration latency : latencies) {
    round.hops.push_back(static_cast<std::uint32_t>(round.kinds.size()));
    round.kinds.push_back({.latency = latency, .slowest_class = LinkClass::nvlink, .loads = {}});
    round.counts.push_back(1);
  }
  return {.uses = {}, .narrowest = {}, .rounds = {round}, .rounds_drift = false};
}

Duration latency_of_chain(const TrafficRoute& route, const CoupledShape& shape) {
  return chain_latency(route, {.kind = PathKind::coupled, .shape = shape}, Calibration{});
}

// Three ranks of a node send to the other over 3 B/s of a NIC: 1 B/s each, and four have less.
TEST_CASE("A link that leaves less than a byte per second to what crosses it is refused by its name") {
  MachineSpec machine = switch_machine(4, nvlink);
  machine.nics = {{wire(LinkClass::network, Bandwidth{3}), {0, 1, 2, 3}}};
  const TestCluster cluster(machine, 2);
  Traffic traffic;
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    traffic.flows.push_back({.source = Rank{rank}, .destination = Rank{4 + rank}});
  CHECK(routed(cluster, traffic).narrowest == Bandwidth{1});
  traffic.flows.push_back({.source = Rank{3}, .destination = Rank{7}});
  CHECK_THROWS_WITH_AS(routed(cluster, traffic), doctest::Contains("node0: nic0 out"), ConfigError);
}

// Four GPUs a node: three hops stay, the fourth leaves.
TEST_CASE("Hops alike in latency, class and load are one kind") {
  MachineSpec machine = switch_machine(4, nvlink);
  machine.nics = {{nic_link, {0, 1, 2, 3}}};
  const TestCluster cluster(machine, 2);
  const TrafficRoute route = routed(cluster, to_the_next(8, 4));
  REQUIRE(route.rounds.size() == 1);
  CHECK(route.rounds[0].counts == std::vector<std::int64_t>{3, 1});
  CHECK(route.rounds[0].hops == std::vector<std::uint32_t>{0, 0, 0, 1});
  CHECK(route.rounds[0].kinds[0].slowest_class == LinkClass::nvlink);
  CHECK(route.rounds[0].kinds[1].slowest_class == LinkClass::network);
}

TEST_CASE("A flow of weight three loads its links three times and leaves a crossing a third of them") {
  const TestCluster cluster(switch_machine(2, nvlink), 1);
  const Flow flow{.source = Rank{0}, .destination = Rank{1}, .weight = 3};
  const TrafficRoute route = routed(cluster, {.flows = {flow}, .rounds = {{flow}}});
  CHECK(route.uses.size() == 2);  // up to the switch and down
  for (const LinkUse& use : route.uses) CHECK(use.multiplicity == 3);
  CHECK(route.narrowest == share(bandwidth, 3));
  CHECK(route.rounds[0].kinds[0].loads == std::vector<LinkLoad>{{bandwidth, 3}});
}

// A step of u bytes over two links of bandwidth B and latency L takes u / B + 2 L. Of k steps the bytes are
// k u / B: what is left are 2 L k.
TEST_CASE("Beyond its bytes a chain takes the latency of every step") {
  const TestCluster cluster(switch_machine(4, nvlink), 1);
  const TrafficRoute route = routed(cluster, to_the_next(4, 4));
  const std::int64_t step = 100'000;
  for (const std::int64_t count : {1, 3, 4, 6})
    CHECK(latency_of_chain(route,
                           {.bytes_per_hop = count * step, .bytes_per_step = step, .chain_steps = count}) ==
          nvlink.latency * 2 * count);
}

TEST_CASE("However many bytes hide the chain, a hop's latency is seen") {
  const TestCluster cluster(switch_machine(4, nvlink), 1);
  const TrafficRoute route = routed(cluster, to_the_next(4, 4));
  CHECK(latency_of_chain(route, {.bytes_per_hop = 1 << 30, .bytes_per_step = 1, .chain_steps = 6}) ==
        nvlink.latency * 2);
}

TEST_CASE("A chain lasts as long as the dearest stretch of its length round the hops") {
  check_for_all(300, "chains", [] {
    const auto count = *rc::gen::inRange(1, 9);
    const auto costs =
        *rc::gen::container<std::vector<std::int64_t>>(count, rc::gen::inRange<std::int64_t>(1, 6));
    const auto steps = *rc::gen::inRange(1, 40);
    std::vector<Duration> latencies;
    for (const std::int64_t cost : costs) latencies.push_back(Duration::microseconds(cost));
    Duration dearest;
    for (int first = 0; first < count; ++first) {
      Duration stretch;
      for (int step = 0; step < steps; ++step)
        stretch += latencies[static_cast<std::size_t>((first + step) % count)];
      dearest = std::max(dearest, stretch);
    }
    RC_ASSERT(latency_of_chain(round_of(latencies), {.chain_steps = steps}) == dearest);
  });
}

// Alone, 100 kB take 1 us on the fast link and 3 us on the slow one: 2 us a hop. Of these the fast link is
// busy half, so the other chain that crosses it is met half the time: 1 us + 1/2 us. The slow link is always
// busy, but no other chain crosses it. One round: 1.5 us + 3 us.
TEST_CASE("Chains that drift meet on a link as often as it is busy") {
  const Bandwidth slow{bandwidth.count() / 3 + 1};  // rounded up: 3 us exactly
  RoutedRound round;
  round.kinds = {{.latency = {}, .slowest_class = LinkClass::nvlink, .loads = {{bandwidth, 2}}},
                 {.latency = {}, .slowest_class = LinkClass::nvlink, .loads = {{slow, 1}}}};
  round.hops = {0, 1};
  round.counts = {1, 1};
  const TrafficRoute route{.uses = {}, .narrowest = {}, .rounds = {round}, .rounds_drift = true};
  CHECK(latency_of_chain(route, {.bytes_per_step = 100'000, .chain_steps = 2}) ==
        Duration::nanoseconds(1'500) + Duration::nanoseconds(3'000));
}

TEST_CASE("A step costs what its protocol's does on that class of link, as the algorithm scales it") {
  Calibration calibration;
  calibration.protocols = {protocol_costing(Duration::microseconds(3), Duration::microseconds(7))};
  calibration.algorithms.emplace_back();
  calibration.algorithms[0].step_scale = Ratio::percent(50);
  const Path plain{.kind = PathKind::hop};
  CHECK(step_cost(calibration, plain, LinkClass::nvlink) == Duration::microseconds(3));
  CHECK(step_cost(calibration, plain, LinkClass::network) == Duration::microseconds(7));
  CHECK(step_cost(calibration, plain, LinkClass::pcie) == Duration::zero());
  const Path halved{.kind = PathKind::hop, .algorithm = 0};
  CHECK(step_cost(calibration, halved, LinkClass::network) == Duration::nanoseconds(3'500));
}

}  // namespace lockstep::traffic_route_test
