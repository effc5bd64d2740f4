// NVLS is one coupled transfer over the NVSwitch: its loads and its time are formulas.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "tests/support/clusters.h"
#include "tests/support/collective_run.h"

namespace lockstep::nvls_test {

const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(450), Duration::nanoseconds(350));
Communicator with_multicast(Communicator world) {
  world.switch_multicasts = true;
  return world;
}

CollectiveRun run_nvls(const TestCluster& cluster, CollectiveOp op, std::int64_t bytes,
                       Fidelity fidelity = Fidelity::flow, std::uint32_t channels = 1) {
  return run_collective(cluster.topology(), with_multicast(cluster.world()), cluster.calibration(),
                        {.algorithm = "nvls",
                         .op = op,
                         .bytes = Bytes{bytes},
                         .fidelity = fidelity,
                         .channels = channels});
}

TEST_CASE("NVLS needs a switch that multicasts, one node and two GPUs") {
  const Collective& nvls = *Registry<Collective>::find("nvls");
  MachineSpec machine = switch_machine(4, nvlink);
  const TestCluster one(machine, 1);
  machine.nics = {{wire(LinkClass::network, gigabytes_per_second(25)), {0}}};
  const TestCluster two(machine, 2);
  const TestCluster alone(switch_machine(1, nvlink), 1);
  CHECK(can_run(nvls, CollectiveOp::all_reduce, with_multicast(one.world())));
  CHECK_FALSE(can_run(nvls, CollectiveOp::all_reduce, one.world()));
  CHECK_FALSE(can_run(nvls, CollectiveOp::all_reduce, with_multicast(two.world())));
  CHECK_FALSE(can_run(nvls, CollectiveOp::all_reduce, with_multicast(alone.world())));
  CHECK_FALSE(can_run(nvls, CollectiveOp::broadcast, with_multicast(one.world())));
}

// Reading its share a GPU receives S / n and sends S / n to each of n; writing, the other way round.
TEST_CASE("An NVLS AllReduce moves (n+1)/n of the bytes over a GPU's link each way, the others n/n") {
  for (const std::int64_t gpus : {2, 3, 5, 8}) {
    const TestCluster cluster(switch_machine(gpus, nvlink), 1);
    const std::int64_t share = 123'456;
    for (const auto& [op, shares] : {std::pair{CollectiveOp::all_reduce, gpus + 1},
                                     {CollectiveOp::reduce_scatter, gpus},
                                     {CollectiveOp::all_gather, gpus}})
      for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
        const auto bytes =
            bytes_by_link(run_nvls(cluster, op, share * gpus, fidelity), cluster.topology().links().size());
        for (const LinkId link : cluster.topology().links().ids())
          if (!cluster.topology().is_compute(link))
            CHECK(bytes[link.index] == shares * share);
      }
  }
}

// A share of 100 chunks of 64 KiB goes in 100 loops of one channel and in 25 of four, one of 40 KiB in three of 16 KiB,
// one of 64 MiB in 128 of four chunks of 128 KiB.
struct Loops {
  std::int64_t share;
  std::uint32_t channels;
  std::int64_t chunks;  // of a loop, all channels together
  std::int64_t loops;
};
constexpr std::int64_t kib = 1024;
constexpr std::array loops_of{Loops{1, 1, 1, 1},
                              Loops{1000, 16, 1000, 1},
                              Loops{40 * kib, 1, 16 * kib, 3},
                              Loops{6'400 * kib, 1, 64 * kib, 100},
                              Loops{6'400 * kib, 4, 4 * 64 * kib, 25},
                              Loops{64 * 1024 * kib, 4, 4 * 128 * kib, 128}};

// Handed out, added, copied out: when the last loop enters the first of three stages two more are to come; of the
// others one. Each step of the chain of loops and stages waits a hop's latency.
TEST_CASE("NVLS takes its bytes, a loop for each stage but one, and a latency for each step, to the picosecond") {
  const Duration step_cost = Duration::nanoseconds(1'234);
  Calibration calibration;
  calibration.protocols = {protocol_costing(step_cost, Duration::zero())};
  const Duration latency = nvlink.latency * 2 + step_cost;
  for (const std::int64_t gpus : {2, 3, 5, 8})
    for (const Loops& wanted : loops_of) {
      const TestCluster cluster(switch_machine(gpus, nvlink), 1, {}, calibration);
      const auto expected = [&](std::int64_t shares_each_way, std::int64_t stages) {
        const auto moved = [&](std::int64_t bytes) {
          return time_to_move(Bytes{bytes}, lockstep::share(nvlink.bandwidth, shares_each_way));
        };
        return moved(wanted.share) + (moved(wanted.chunks) + latency) * (wanted.loops + stages - 1) -
               moved(wanted.loops * wanted.chunks);
      };
      const auto time = [&](CollectiveOp op) {
        return run_nvls(cluster, op, wanted.share * gpus, Fidelity::flow, wanted.channels).time();
      };
      INFO(gpus, " GPUs, shares of ", wanted.share, " bytes on ", wanted.channels, " channels");
      CHECK(time(CollectiveOp::all_reduce) == expected(gpus + 1, 3));
      CHECK(time(CollectiveOp::all_gather) == expected(gpus, 2));
      CHECK(time(CollectiveOp::reduce_scatter) == expected(gpus, 2));
    }
}

// T >= (n+1)/n S/B, so the bus bandwidth 2(n-1)/n S/T is at most 2(n-1)/(n+1) B: for 8 GPUs 14/9 of the wire. A loop of
// 16 channels moves 9 x 2 MiB over a link of 450 GB/s in 41.9 us and waits two wires of 350 ns: 0.984 of that.
TEST_CASE("The bus bandwidth of NVLS exceeds the wire's and stays below 2(n-1)/(n+1) of it") {
  const TestCluster cluster(switch_machine(8, nvlink), 1);
  const std::int64_t bytes = std::int64_t{8} << 30;
  const double seconds =
      run_nvls(cluster, CollectiveOp::all_reduce, bytes, Fidelity::flow, 16).time().in_seconds();
  const double bus = 2.0 * 7 / 8 * static_cast<double>(bytes) / seconds;
  const auto wire_rate = static_cast<double>(nvlink.bandwidth.count());
  CHECK(bus <= 2.0 * 7 / 9 * wire_rate);
  const double loop_s = 9.0 * 2 * 1024 * 1024 / wire_rate;
  const double of_loop = loop_s / (loop_s + 2 * nvlink.latency.in_seconds());
  CHECK(bus > 0.99 * of_loop * 2.0 * 7 / 9 * wire_rate);
}

}  // namespace lockstep::nvls_test
