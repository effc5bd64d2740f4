#include "sim/collectives/pairwise.h"

#include <doctest/doctest.h>

#include "tests/collectives/symbolic_buffers.h"

namespace lockstep::pairwise_test {

std::vector<std::vector<std::uint32_t>> channels_of_gpus(const Communicator& world) {
  std::vector<std::vector<std::uint32_t>> channels;
  for (std::uint32_t local = 0; local < world.gpus_per_node; ++local)
    channels.push_back(channels_beside(world, local));
  return channels;
}

using Channels = std::vector<std::vector<std::uint32_t>>;

// Rings are dealt round the NICs, ring r by NIC r, and enter the node at the GPU beside it.
TEST_CASE("A GPU sends by the NICs beside it, or shares those there are") {
  CHECK(channels_of_gpus(TestCluster(machine_with_nics(4, 4), 2).world()) == Channels{{0}, {1}, {2}, {3}});
  CHECK(channels_of_gpus(TestCluster(machine_with_nics(4, 2), 2).world()) == Channels{{0}, {0}, {1}, {1}});
  CHECK(channels_of_gpus(TestCluster(machine_with_nics(4, 1), 2).world()) == Channels{{0}, {0}, {0}, {0}});
  CHECK(channels_of_gpus(TestCluster(machine_with_nics(2, 4), 2).world()) == Channels{{0, 1}, {2, 3}});
}

TEST_CASE("The NIC beside a GPU is found whatever the order of the NICs") {
  MachineSpec machine = machine_with_nics(3, 0);
  for (const std::int64_t gpu : {2, 0, 1})
    machine.nics.push_back({wire(LinkClass::network, gigabytes_per_second(10)), {gpu}});
  CHECK(channels_of_gpus(TestCluster(machine, 2).world()) == Channels{{1}, {2}, {0}});
}

TEST_CASE("Inside a node one channel will do") {
  CHECK(channels_of_gpus(TestCluster(machine_with_nics(3, 6), 1).world()) == Channels{{0}, {0}, {0}});
}

// 1,000 bytes on two channels of three parts: ceil(500 / 3).
TEST_CASE("Blocks are rounded up on every channel") {
  const TestCluster cluster(machine_with_nics(1, 2), 3);
  CHECK(bytes_per_block({.bytes = Bytes{1'000}, .world = cluster.world(), .lanes = {}, .after = {}}, 3) ==
        167);
}

// Of three ranks the second hands everything to the first, who is then busy: the third's first message to it
// has to wait, although all the third needs is there from the start.
TEST_CASE("A message waits until its receiver has done with the rounds before") {
  const TestCluster cluster(switch_machine(3, wire(LinkClass::nvlink, gigabytes_per_second(100))), 1);
  const CollectiveRun run = run_on(cluster, {.algorithm = "halving_doubling", .bytes = Bytes{1'000'000}});
  Time handed_in;
  Time first_from_third{Duration::seconds(1)};
  for (std::uint32_t op = 0; op < run.plan.size(); ++op) {
    if (run.plan.kind[op] != OpKind::transfer)
      continue;
    const Path& path = run.plan.paths[run.plan.path[op]];
    if (path.rank == Rank{1})
      handed_in = std::max(handed_in, run.timeline.end[op]);
    if (path.rank == Rank{2})
      first_from_third = std::min(first_from_third, run.timeline.start[op]);
  }
  CHECK(handed_in > Time{});
  CHECK(first_from_third == handed_in);
}

}  // namespace lockstep::pairwise_test
