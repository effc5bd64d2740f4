// Relay: who sends how much to whom, and how long it takes.

#include <doctest/doctest.h>

#include <map>

#include "tests/collectives/symbolic_buffers.h"

namespace lockstep::relay_test {
namespace {

CollectiveCase relay(std::int64_t bytes, const TokenRouting& routing = {},
                     Fidelity fidelity = Fidelity::step) {
  return {.algorithm = "relay",
          .op = CollectiveOp::all_to_all,
          .bytes = Bytes{bytes},
          .fidelity = fidelity,
          .routing = routing};
}

std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> sent_by_pair(const TestCluster& cluster,
                                                                             const CollectiveCase& wanted) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> sent;
  for (const SentMessage& message : messages_in_allowed_order(write_on(cluster, wanted).plan, 0))
    sent[{message.source, message.destination}] += message.bytes;
  return sent;
}

}  // namespace

// On 3 nodes of 2: S/3 to the GPU of the same index on each other node, which hands on what came of all three nodes, S/6
// of each, to the other GPU of its own.
TEST_CASE("what goes to a node goes there once, to the GPU of the sender's index, and is handed on inside") {
  const TestCluster cluster(machine_with_nics(2, 1), 3);
  const auto sent = sent_by_pair(cluster, relay(6'000));
  CHECK(sent.size() == 6 * 2 + 6);
  for (const auto& [pair, bytes] : sent) {
    const bool is_inside = pair.first / 2 == pair.second / 2;
    CHECK((is_inside || pair.first % 2 == pair.second % 2));
    CHECK(bytes == (is_inside ? 3 * 1'000 : 2'000));
  }
}

// Two copies a token of four experts, one a GPU: half of all tokens visit each GPU, and five in six each node.
TEST_CASE("copies of a token travel as one") {
  const TestCluster cluster(machine_with_nics(2, 1), 2);
  const auto sent = sent_by_pair(cluster, relay(12'000, {.experts = 4, .per_token = 2}));
  for (const auto& [pair, bytes] : sent)
    CHECK(bytes == (pair.first / 2 == pair.second / 2 ? 2 * 3'000 : 5'000));
}

// Over one switch every rank has n - 1 messages on its link, and no peer has to be started.
TEST_CASE("in a node it takes the bytes of the tokens that come and one hop, to the picosecond") {
  const LinkSpec link = wire(LinkClass::nvlink, divisible_bandwidth, Duration::nanoseconds(350));
  Calibration calibration;
  calibration.collective_launch = Duration::microseconds(5);
  calibration.protocols = {protocol_costing(Duration::nanoseconds(1'234), Duration::nanoseconds(5'678))};
  calibration.peer.start = Duration::nanoseconds(700);
  const Duration hop = link.latency * 2 + Duration::nanoseconds(1'234);
  for (const std::int64_t n : {2, 4, 8})
    for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
      CAPTURE(n);
      const TestCluster cluster(switch_machine(n, link), 1, {}, calibration);
      const auto time = [&](const TokenRouting& routing) {
        return run_on(cluster, relay(16'000'000, routing, fidelity)).time() - calibration.collective_launch -
               hop;
      };
      const Bandwidth each = share(divisible_bandwidth, n - 1);
      CHECK(time({}) == time_to_move(Bytes{16'000'000 / n}, each));
      // One expert a GPU and one copy a token: nothing travels together.
      CHECK(time({.experts = n, .per_token = 1}) == time_to_move(Bytes{16'000'000 / n}, each));
      // Every token has an expert everywhere.
      CHECK(time({.experts = n, .per_token = n}) == time_to_move(Bytes{16'000'000 / n}, each));
    }
}

TEST_CASE("fewer copies that travel apart never take longer") {
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
    const TestCluster cluster(machine_with_nics(2, 1), 2);
    const auto time = [&](const TokenRouting& routing) {
      return run_on(cluster, relay(80'000'000, routing, fidelity)).time();
    };
    CHECK(time({.experts = 4, .per_token = 4}) < time({.experts = 4, .per_token = 2}));
    CHECK(time({.experts = 4, .per_token = 2}) < time({}));
  }
}

}  // namespace lockstep::relay_test
