#include "sim/collectives/collective.h"

#include <doctest/doctest.h>

#include "tests/support/clusters.h"

namespace lockstep::collective_test {

Communicator world_of(std::uint32_t nodes, std::uint32_t gpus, std::uint32_t rings = 1) {
  Communicator world;
  world.nodes = nodes;
  world.gpus_per_node = gpus;
  std::vector<std::uint32_t> order;
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) order.push_back(gpu);
  world.rings.assign(rings, ring_pattern(order, 1));
  world.ring_bandwidth = gigabytes_per_second(10);
  return world;
}

CollectiveRequest request(const Communicator& world, CollectiveOp op, std::int64_t bytes) {
  return {.op = op, .bytes = Bytes{bytes}, .world = world, .lanes = {}, .after = {}};
}

// nccl-tests doc/PERFORMANCE.md: 2(n-1)/n, (n-1)/n, 1.
TEST_CASE("Bus factors are nccl-tests' own") {
  const auto factor = [](CollectiveOp op) { return bus_factor(op, 8); };
  CHECK(factor(CollectiveOp::all_reduce).numerator * 8 ==
        2 * (8 - 1) * factor(CollectiveOp::all_reduce).denominator);
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter})
    CHECK(factor(op).numerator * 8 == (8 - 1) * factor(op).denominator);
  for (const CollectiveOp op : {CollectiveOp::broadcast, CollectiveOp::reduce})
    CHECK(factor(op).numerator == factor(op).denominator);
}

TEST_CASE("Operations are found by their name and by nccl-tests' spelling") {
  CHECK(*find_collective_op("all_reduce") == CollectiveOp::all_reduce);
  CHECK(*find_collective_op("allreduce") == CollectiveOp::all_reduce);
  CHECK(*find_collective_op("bcast") == CollectiveOp::broadcast);
  CHECK(find_collective_op("all_to_nothing") == nullptr);
  for (const std::string& name : collective_op_names())
    CHECK(collective_op_name(*find_collective_op(name)) == name);
}

// An AllReduce goes round twice, gather and scatter once; every chunk is an n-th of a ring's part.
TEST_CASE("Rings take 2(n-1) or n-1 steps of an n-th each") {
  const Communicator world = world_of(2, 4);
  const std::int64_t n = 8;
  const RingSteps twice = ring_steps(request(world, CollectiveOp::all_reduce, 800));
  CHECK(twice.count == 2 * (n - 1));
  CHECK(twice.bytes == Bytes{800 / n});
  const RingSteps once = ring_steps(request(world, CollectiveOp::all_gather, 800));
  CHECK(once.count == n - 1);
  CHECK(once.bytes == Bytes{800 / n});
}

TEST_CASE("Several rings carry an equal part each") {
  const Communicator world = world_of(1, 4, 3);
  CHECK(ring_steps(request(world, CollectiveOp::all_reduce, 3 * 4 * 100)).bytes == Bytes{100});
}

// 10 bytes on 4 ranks: chunks of 3, since NCCL pads to equal chunks.
TEST_CASE("Chunks are rounded up to equal size") {
  const Communicator world = world_of(1, 4);
  CHECK(ring_steps(request(world, CollectiveOp::all_reduce, 10)).bytes == Bytes{3});
}

}  // namespace lockstep::collective_test
