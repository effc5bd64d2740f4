// NVLS is one coupled transfer over the NVSwitch: its loads and its time are formulas.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/clusters.h"
#include "tests/support/collective_run.h"

namespace lockstep::nvls_test {

const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(450), Duration::nanoseconds(350));
constexpr std::int64_t chunk_of_share = 64 * 1024;

Communicator with_multicast(Communicator world) {
  world.switch_multicasts = true;
  return world;
}

CollectiveRun run_nvls(const TestCluster& cluster, CollectiveOp op, std::int64_t bytes,
                       Fidelity fidelity = Fidelity::flow) {
  return run_collective(cluster.topology(), with_multicast(cluster.world()), cluster.calibration(),
                        {.algorithm = "nvls", .op = op, .bytes = Bytes{bytes}, .fidelity = fidelity});
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

// Read, then write: a hop's latency L twice, and one chunk more than the bytes, which waits to be written
// when the last is read. The others go through the switch once.
TEST_CASE("NVLS takes its bytes, its latencies and a chunk, to the picosecond") {
  const Duration step_cost = Duration::nanoseconds(1'234);
  Calibration calibration;
  calibration.protocols = {protocol_costing(step_cost, Duration::zero())};
  const Duration latency = nvlink.latency * 2 + step_cost;
  for (const std::int64_t gpus : {2, 3, 5, 8})
    for (const std::int64_t share : {1L, 1000L, chunk_of_share, 100 * chunk_of_share}) {
      const TestCluster cluster(switch_machine(gpus, nvlink), 1, {}, calibration);
      const auto moved = [&](std::int64_t bytes, std::int64_t shares) {
        return time_to_move(Bytes{bytes}, lockstep::share(nvlink.bandwidth, shares));
      };
      const std::int64_t bytes = share * gpus;
      INFO(gpus, " GPUs, ", bytes, " bytes");
      CHECK(run_nvls(cluster, CollectiveOp::all_reduce, bytes).time() ==
            moved(share, gpus + 1) + moved(std::min(share, chunk_of_share), gpus + 1) + latency * 2);
      CHECK(run_nvls(cluster, CollectiveOp::all_gather, bytes).time() == moved(share, gpus) + latency);
      CHECK(run_nvls(cluster, CollectiveOp::reduce_scatter, bytes).time() == moved(share, gpus) + latency);
    }
}

// T >= (n+1)/n S/B, so the bus bandwidth 2(n-1)/n S/T is at most 2(n-1)/(n+1) B: for 8 GPUs 14/9 of the wire.
TEST_CASE("The bus bandwidth of NVLS exceeds the wire's and stays below 2(n-1)/(n+1) of it") {
  const TestCluster cluster(switch_machine(8, nvlink), 1);
  const std::int64_t bytes = std::int64_t{8} << 30;
  const double seconds = run_nvls(cluster, CollectiveOp::all_reduce, bytes).time().in_seconds();
  const double bus = 2.0 * 7 / 8 * static_cast<double>(bytes) / seconds;
  const auto wire_rate = static_cast<double>(nvlink.bandwidth.count());
  CHECK(bus <= 2.0 * 7 / 9 * wire_rate);
  CHECK(bus > 0.99 * 2.0 * 7 / 9 * wire_rate);
}

}  // namespace lockstep::nvls_test
