// Direct: what the messages mean, how long they take, where they go.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sim/collectives/pairwise.h"
#include "sim/study/bench/collective_table.h"
#include "tests/collectives/symbolic_buffers.h"
#include "tests/support/scenarios.h"

namespace lockstep::direct_test {

CollectiveCase direct(CollectiveOp op, std::int64_t bytes, Fidelity fidelity = Fidelity::step) {
  return {.algorithm = "direct", .op = op, .bytes = Bytes{bytes}, .fidelity = fidelity};
}

// Part j goes to rank j and is added there; then rank j's part goes to all.
void check_meaning(CollectiveOp op, std::int64_t gpus, std::int64_t nodes, std::uint64_t seed) {
  INFO(collective_op_name(op), " on ", nodes, " x ", gpus, ", order ", seed);
  const TestCluster cluster(machine_with_nics(gpus, 1), nodes);
  const std::uint32_t ranks = cluster.world().ranks();
  const auto written = write_on(cluster, direct(op, 1'000'000));
  SymbolicBuffers buffers(ranks, ranks);
  op == CollectiveOp::all_gather ? buffers.give_each_its_block() : buffers.give_each_its_part();
  Occurrences between;
  for (const SentMessage& message : messages_in_allowed_order(written.plan, seed)) {
    const bool is_second = between.next(message.source, message.destination) > 0;
    if (op == CollectiveOp::all_gather || is_second)
      buffers.replace(message, message.source);
    else
      buffers.add(message, message.destination);
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) CHECK(buffers.has_result(rank, op));
}

TEST_CASE("After a direct collective every rank holds its result, every part in it exactly once") {
  for (const CollectiveOp op :
       {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter})
    for (std::uint64_t seed = 0; seed < 5; ++seed)
      for (const std::int64_t gpus : {1, 2, 3, 4})
        for (const std::int64_t nodes : {1, 2, 3}) check_meaning(op, gpus, nodes, seed);
}

std::set<std::pair<std::uint32_t, std::uint32_t>> pairs_of(const Plan& plan) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const SentMessage& message : messages_in_allowed_order(plan, 0))
    CHECK(pairs.emplace(message.source, message.destination).second);
  return pairs;
}

TEST_CASE("Every pair that has something to say has one message") {
  const TestCluster cluster(machine_with_nics(4, 2), 2);
  const std::uint32_t n = cluster.world().ranks();
  std::set<std::pair<std::uint32_t, std::uint32_t>> all;
  std::set<std::pair<std::uint32_t, std::uint32_t>> next;
  std::set<std::pair<std::uint32_t, std::uint32_t>> to_root;
  std::set<std::pair<std::uint32_t, std::uint32_t>> from_root;
  for (std::uint32_t rank = 0; rank < n; ++rank) {
    next.emplace(rank, (rank + 1) % n);
    for (std::uint32_t other = 0; other < n; ++other)
      if (other != rank)
        all.emplace(rank, other);
    if (rank != 0) {
      to_root.emplace(rank, 0u);
      from_root.emplace(0u, rank);
    }
  }
  CHECK(pairs_of(write_on(cluster, direct(CollectiveOp::all_to_all, 8'000)).plan) == all);
  CHECK(pairs_of(write_on(cluster, direct(CollectiveOp::send_recv, 8'000)).plan) == next);
  CHECK(pairs_of(write_on(cluster, direct(CollectiveOp::gather, 8'000)).plan) == to_root);
  CHECK(pairs_of(write_on(cluster, direct(CollectiveOp::scatter, 8'000)).plan) == from_root);
}

// (n-1)/n S of an all-to-all, all-gather or reduce-scatter, twice that of an AllReduce, S of a send; a
// gather's root sends nothing and the others S / n, a scatter's root all that.
TEST_CASE("A rank sends what the bus factors count") {
  const TestCluster cluster(machine_with_nics(3, 1), 2);
  const std::int64_t n = 6;
  const std::int64_t part = 1'000;
  const auto sent = [&](CollectiveOp op) {
    return bytes_sent_by_rank(write_on(cluster, direct(op, n * part)).plan, 6);
  };
  const auto all = [&](std::int64_t bytes) { return std::vector<std::int64_t>(6, bytes); };
  for (const CollectiveOp op :
       {CollectiveOp::all_to_all, CollectiveOp::all_gather, CollectiveOp::reduce_scatter})
    CHECK(sent(op) == all((n - 1) * part));
  CHECK(sent(CollectiveOp::all_reduce) == all(2 * (n - 1) * part));
  CHECK(sent(CollectiveOp::send_recv) == all(n * part));
  CHECK(sent(CollectiveOp::gather) == std::vector<std::int64_t>{0, part, part, part, part, part});
  CHECK(sent(CollectiveOp::scatter) == std::vector<std::int64_t>{(n - 1) * part, 0, 0, 0, 0, 0});
}

Calibration peers_costing(Duration start, std::optional<Bandwidth> channel_bandwidth, Duration ramp) {
  Calibration calibration;
  calibration.collective_launch = Duration::microseconds(5);
  calibration.protocols = {protocol_costing(Duration::nanoseconds(1'234), Duration::nanoseconds(5'678))};
  calibration.peer = {.start = start, .channel_bandwidth = channel_bandwidth, .ramp = ramp};
  return calibration;
}

const LinkSpec switch_link = wire(LinkClass::nvlink, divisible_bandwidth, Duration::nanoseconds(350));
const Duration switch_hop = switch_link.latency * 2 + Duration::nanoseconds(1'234);

// n - 1 messages leave and enter every rank's link at once, so each has B / (n-1); a gather and a scatter
// have as many on the root's link; a send has its link alone. After the launch every peer costs its start.
TEST_CASE("Over one switch messages between pairs take starts, bytes and one hop, to the picosecond") {
  const Calibration calibration = peers_costing(Duration::nanoseconds(700), std::nullopt, Duration::zero());
  for (const std::int64_t n : {2, 3, 4, 7, 8, 16})
    for (const std::int64_t bytes : {8, 10'000, 1'234'567, 90'000'000})
      for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
        INFO(n, " ranks, ", bytes, " bytes");
        const TestCluster cluster(switch_machine(n, switch_link), 1, {}, calibration);
        const Duration launch = calibration.collective_launch;
        const Duration start = calibration.peer.start;
        const Duration parts =
            time_to_move(Bytes{divided_up(bytes, n)}, share(divisible_bandwidth, n - 1)) + switch_hop;
        const auto time = [&](CollectiveOp op) {
          return run_on(cluster, direct(op, bytes, fidelity)).time();
        };
        for (const CollectiveOp op : {CollectiveOp::all_to_all, CollectiveOp::gather, CollectiveOp::scatter})
          CHECK(time(op) == launch + start * (n - 1) + parts);
        CHECK(time(CollectiveOp::send_recv) ==
              launch + start * 2 + time_to_move(Bytes{bytes}, divisible_bandwidth) + switch_hop);
        CHECK(time(CollectiveOp::all_gather) == launch + parts);
        CHECK(time(CollectiveOp::reduce_scatter) == launch + parts);
        CHECK(time(CollectiveOp::all_reduce) == launch + parts * 2);
      }
}

// A message of m bytes alone on a channel of bandwidth C takes m / C if that is below the ramp R, else R, and
// the result waits for the longer of this and the wire. With C = B / 100 a small message meets m / C, one of
// m > R C meets R, and one whose bytes alone take longer than R on the wire does not notice. It starts on its share of all channels.
TEST_CASE("A message alone on its channel is slow until other channels have joined in") {
  const Bandwidth channel = share(divisible_bandwidth, 100);
  const Duration ramp = Duration::microseconds(50);
  const Calibration calibration = peers_costing(Duration::nanoseconds(700), channel, ramp);
  const TestCluster cluster(switch_machine(4, switch_link), 1, {}, calibration);
  const Duration before = calibration.collective_launch + calibration.peer.start * 2;
  const std::int64_t at_once = least_channels_of_message(cluster.world());
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
    const auto time = [&](std::int64_t bytes) {
      return run_on(cluster, direct(CollectiveOp::send_recv, bytes, fidelity)).time();
    };
    const std::int64_t ramped = moved_in(ramp, channel).count() * at_once;
    CHECK(time(ramped / 2) == before + time_to_move(Bytes{ramped / 2 / at_once}, channel));
    CHECK(time(ramped * 2) == before + ramp);
    CHECK(time(ramped * 1'000) ==
          before + time_to_move(Bytes{ramped * 1'000}, divisible_bandwidth) + switch_hop);
  }
}

// NCCL 2.7 gives a channel 2 MiB of a message before another joins: up to there one moves all of it, beyond each as much.
TEST_CASE("Until NCCL 2.8 a message between a pair starts on one channel") {
  const auto scenario_of = [](const char* version) {
    return load_collective_setting({.machine = "dgx_a100_80gb", .library_version = version},
                                   shipped_profiles());
  };
  const LoadedScenario old = scenario_of("2.7.8");
  const LoadedScenario later = scenario_of("2.8.3");
  const CollectiveBench one_channel(old);
  const CollectiveBench split(later);
  const Bandwidth channel = split.world().peer.channel_bandwidth;
  constexpr Bytes chunk{2 * 1024 * 1024};
  const auto slack =
      Duration::nanoseconds(1);  // of a rate that is a share of another, in whole bytes a second
  const auto is_about = [&](Duration time, Duration expected) {
    return time >= expected && time <= expected + slack;
  };
  CHECK(is_about(time_alone(one_channel.world(), Bytes{100'000}), time_to_move(Bytes{100'000}, channel)));
  CHECK(time_alone(one_channel.world(), chunk * 16) == time_to_move(chunk, channel));
  const std::int64_t at_once = least_channels_of_message(split.world());
  CHECK(at_once > 1);
  CHECK(time_alone(split.world(), Bytes{100'000}) ==
        time_to_move(divided_up(Bytes{100'000}, at_once), channel));
}

// Of a rank's n - 1 messages those to the g (N-1) ranks of other nodes leave by the NIC beside it, and as
// many come in by it; the switch is wide enough not to matter.
TEST_CASE("Between nodes an all-to-all takes the messages on one GPU's NIC, to the picosecond") {
  const LinkSpec wide = wire(LinkClass::nvlink, Bandwidth{divisible_bandwidth.count() * 100});
  const LinkSpec nic = wire(LinkClass::network, divisible_bandwidth, Duration::microseconds(3));
  for (const std::int64_t gpus : {1, 2, 4})
    for (const std::int64_t nodes : {2, 3, 4})
      for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
        INFO(nodes, " x ", gpus);
        MachineSpec machine = switch_machine(gpus, wide);
        for (std::int64_t gpu = 0; gpu < gpus; ++gpu) machine.nics.push_back({nic, {gpu}});
        const TestCluster cluster(machine, nodes);
        const Bytes message = divided_up(Bytes{10'000'000}, gpus * nodes);
        CHECK(run_on(cluster, direct(CollectiveOp::all_to_all, 10'000'000, fidelity)).time() ==
              time_to_move(message, share(divisible_bandwidth, gpus * (nodes - 1))) + nic.latency);
      }
}

TEST_CASE("A message leaves by the NIC beside its sender") {
  for (const auto& [gpus, nics] : {std::pair{4, 4}, std::pair{4, 2}, std::pair{8, 4}}) {
    const TestCluster cluster(machine_with_nics(gpus, nics), 2);
    for (const SentMessage& message :
         messages_in_allowed_order(write_on(cluster, direct(CollectiveOp::all_to_all, 8'000)).plan, 0)) {
      const auto local = static_cast<std::int64_t>(message.source) % gpus;
      CHECK(std::int64_t{message.channel} == local * nics / gpus);
    }
  }
}

// Two GPUs with four NICs: each GPU's messages are halved over its two.
TEST_CASE("A GPU with several NICs splits every message over them") {
  const TestCluster cluster(machine_with_nics(2, 4), 2);
  std::map<std::uint32_t, std::set<std::uint32_t>> channels;
  for (const SentMessage& message :
       messages_in_allowed_order(write_on(cluster, direct(CollectiveOp::all_to_all, 8'000)).plan, 0)) {
    channels[message.source % 2].insert(message.channel);
    CHECK(message.bytes == 8'000 / 4 / 2);
  }
  CHECK(channels[0] == std::set<std::uint32_t>{0, 1});
  CHECK(channels[1] == std::set<std::uint32_t>{2, 3});
}

TEST_CASE("At fidelity flow a direct collective is one transfer, an AllReduce two") {
  const TestCluster cluster(machine_with_nics(4, 2), 2);
  for (const std::string& name : collective_op_names()) {
    const CollectiveOp op = *find_collective_op(name);
    if (Registry<Collective>::find("direct")->supports(op))
      CHECK(count_transfers(write_on(cluster, direct(op, 8'000, Fidelity::flow)).plan) ==
            (op == CollectiveOp::all_reduce ? 2 : 1));
  }
}

TEST_CASE("A rank alone, or no bytes, moves nothing") {
  const TestCluster alone(machine_with_nics(1, 0), 1);
  const TestCluster four(machine_with_nics(4, 0), 1);
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
    CHECK(count_transfers(write_on(alone, direct(CollectiveOp::all_to_all, 8, fidelity)).plan) == 0);
    CHECK(count_transfers(write_on(four, direct(CollectiveOp::all_to_all, 0, fidelity)).plan) == 0);
  }
}

}  // namespace lockstep::direct_test
