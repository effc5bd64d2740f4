// PAT: what its messages mean, how long they take, where it runs.

#include <doctest/doctest.h>

#include <bit>

#include "tests/collectives/symbolic_buffers.h"

namespace lockstep::pat_test {

constexpr CollectiveOp pat_ops[]{CollectiveOp::all_gather, CollectiveOp::reduce_scatter};

CollectiveCase pat(CollectiveOp op, std::int64_t bytes, Fidelity fidelity = Fidelity::step) {
  return {.algorithm = "pat", .op = op, .bytes = Bytes{bytes}, .fidelity = fidelity};
}

// Bruck: the sender of a message over distance 2^k gives the blocks of itself and the ranks before it, 2^k of
// them or all that lack. Backwards the receiver of one over -2^k collects its own and those before it.
std::int64_t replay(const SentMessage& message, CollectiveOp op, std::uint32_t ranks,
                    SymbolicBuffers& buffers) {
  const bool gathers = op == CollectiveOp::all_gather;
  const std::uint32_t first = gathers ? message.source : message.destination;
  const std::uint32_t last = gathers ? message.destination : message.source;
  const std::uint32_t distance = (last + ranks - first) % ranks;
  CHECK(std::has_single_bit(distance));
  const std::uint32_t count = std::min(distance, ranks - distance);
  for (std::uint32_t before = 0; before < count; ++before) {
    const std::uint32_t block = (first + ranks - before) % ranks;
    gathers ? buffers.replace(message, block) : buffers.add(message, block);
  }
  return count;
}

// With two NICs a node there are two channels, each with a half of every block.
void check_meaning(CollectiveOp op, std::uint32_t nodes, std::int64_t nics, std::uint64_t seed) {
  INFO(collective_op_name(op), " on ", nodes, " nodes with ", nics, " NICs, order ", seed);
  const TestCluster cluster(machine_with_nics(1, nics), nodes);
  const std::int64_t bytes = 1'000'000;
  const auto messages = messages_in_allowed_order(write_on(cluster, pat(op, bytes)).plan, seed);
  for (std::uint32_t channel = 0; channel < nics; ++channel) {
    SymbolicBuffers buffers(nodes, nodes);
    op == CollectiveOp::all_gather ? buffers.give_each_its_block() : buffers.give_each_its_part();
    for (const SentMessage& message : messages)
      if (message.channel == channel)
        CHECK(message.bytes ==
              replay(message, op, nodes, buffers) * divided_up(divided_up(bytes, nics), nodes));
    for (std::uint32_t rank = 0; rank < nodes; ++rank) CHECK(buffers.has_result(rank, op));
  }
}

TEST_CASE("After PAT every rank holds its result, every part in it exactly once") {
  for (const CollectiveOp op : pat_ops)
    for (std::uint64_t seed = 0; seed < 5; ++seed)
      for (const std::uint32_t nodes : {2, 3, 4, 5, 7, 8, 11, 16})
        for (const std::int64_t nics : {1, 2}) check_meaning(op, nodes, nics, seed);
}

TEST_CASE("A rank sends (n-1)/n of the bytes") {
  for (const std::uint32_t n : {2, 3, 6, 8, 13}) {
    const TestCluster cluster(machine_with_nics(1, 1), n);
    for (const CollectiveOp op : pat_ops)
      CHECK(bytes_sent_by_rank(write_on(cluster, pat(op, n * 1'000)).plan, n) ==
            std::vector<std::int64_t>(n, std::int64_t{n - 1} * 1'000));
  }
}

// Round k carries min(2^k, n - 2^k) blocks over a NIC and pays one hop; all ranks do alike.
TEST_CASE("The rounds follow one another on the NICs, to the picosecond") {
  const LinkSpec nic = wire(LinkClass::network, divisible_bandwidth, Duration::microseconds(3));
  MachineSpec machine = switch_machine(1, wire(LinkClass::nvlink, gigabytes_per_second(100)));
  machine.nics = {{nic, {0}}};
  FabricSpec fabric;
  fabric.hop_latency = Duration::nanoseconds(150);
  Calibration calibration;
  calibration.collective_launch = Duration::microseconds(5);
  calibration.protocols = {protocol_costing(Duration::zero(), Duration::nanoseconds(1'234))};
  const Duration hop = nic.latency + fabric.hop_latency + Duration::nanoseconds(1'234);
  for (const std::int64_t n : {2, 3, 4, 6, 7, 8, 13, 16})
    for (const std::int64_t bytes : {8, 10'000, 1'234'567, 90'000'000})
      for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
        INFO(n, " nodes, ", bytes, " bytes");
        const TestCluster cluster(machine, n, fabric, calibration);
        const Bytes block{divided_up(bytes, n)};
        Duration rounds;
        for (std::int64_t distance = 1; distance < n; distance *= 2)
          rounds += time_to_move(block * std::min(distance, n - distance), nic.bandwidth) + hop;
        for (const CollectiveOp op : pat_ops)
          CHECK(run_on(cluster, pat(op, bytes, fidelity)).time() == calibration.collective_launch + rounds);
      }
}

TEST_CASE("PAT needs nodes of one GPU") {
  const Collective& collective = *Registry<Collective>::find("pat");
  CHECK(can_run(collective, CollectiveOp::all_gather, TestCluster(machine_with_nics(1, 1), 4).world()));
  CHECK_FALSE(can_run(collective, CollectiveOp::all_gather, TestCluster(machine_with_nics(2, 1), 4).world()));
  CHECK_FALSE(can_run(collective, CollectiveOp::all_reduce, TestCluster(machine_with_nics(1, 1), 4).world()));
}

TEST_CASE("There are as many rounds as doublings reach all ranks") {
  for (const auto& [n, rounds] : {std::pair{2, 1}, std::pair{3, 2}, std::pair{8, 3}, std::pair{9, 4}}) {
    const TestCluster cluster(machine_with_nics(1, 1), n);
    for (const CollectiveOp op : pat_ops)
      CHECK(count_transfers(write_on(cluster, pat(op, 8'000, Fidelity::flow)).plan) == rounds);
  }
}

}  // namespace lockstep::pat_test
