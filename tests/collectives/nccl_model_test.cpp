#include "sim/collectives/nccl_model.h"

#include <doctest/doctest.h>

#include "tests/support/clusters.h"

namespace lockstep::nccl_model_test {

// Ampere GPUs round a switch; `nodes` of them, with one ring of 24 channels.
Communicator ampere(std::uint32_t nodes, std::uint32_t gpus) {
  Communicator world;
  world.nodes = nodes;
  world.gpus_per_node = gpus;
  std::vector<std::uint32_t> order;
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) order.push_back(gpu);
  world.rings = {ring_pattern(order, 24)};
  world.planning.compute_capability = 80;
  world.planning.has_nvlink = true;
  world.planning.in_node = gigabytes_per_second(240);
  world.planning.between_nodes = gigabytes_per_second(192);
  return world;
}

NcclEstimate ring_of(const Communicator& world, CollectiveOp op) {
  const TunerRequest request{.world = world, .op = op, .bytes = Bytes{1 << 20}};
  return ring_estimate(NcclCase(request), NcclProtocol::simple);
}

// An all-reduce goes round twice less two steps; what only gathers goes round once less one.
TEST_CASE("A ring that reduces and gathers takes twice the steps of one that gathers") {
  const Communicator world = ampere(1, 8);
  const NcclEstimate both = ring_of(world, CollectiveOp::all_reduce);
  const NcclEstimate half = ring_of(world, CollectiveOp::all_gather);
  CHECK(both.bandwidth == 240'000 * 8 / 14);
  CHECK(half.bandwidth == 240'000 * 8 / 7);
  const NcclConstants& constants = nccl_constants(newest_nccl);
  const std::int64_t base = constants.ring_base[2];
  CHECK(both.latency - base == 14 * constants.ring.nvlink[2]);
  CHECK(half.latency - base == 7 * constants.ring.nvlink[2]);
}

TEST_CASE("What an algorithm cannot do has no bandwidth") {
  const Communicator world = ampere(2, 8);
  const TunerRequest gather{.world = world, .op = CollectiveOp::all_gather, .bytes = Bytes{1 << 20}};
  const TunerRequest reduce{.world = world, .op = CollectiveOp::all_reduce, .bytes = Bytes{1 << 20}};
  CHECK(tree_estimate(NcclCase(gather), NcclProtocol::simple).bandwidth == 0);
  CHECK(tree_estimate(NcclCase(reduce), NcclProtocol::simple).bandwidth > 0);
  CHECK(nvls_estimate(NcclCase(reduce)).bandwidth == 0);  // no switch that multicasts
  CHECK(nvls_tree_estimate(NcclCase(reduce)).bandwidth == 0);
  CHECK(pat_estimate(NcclCase(gather)).bandwidth == 0);  // one GPU a node only
}

TEST_CASE("PAT gathers over nodes of one GPU, in logarithmic steps") {
  const Communicator world = ampere(8, 1);
  const TunerRequest gather{.world = world, .op = CollectiveOp::all_gather, .bytes = Bytes{1 << 20}};
  const NcclEstimate found = pat_estimate(NcclCase(gather));
  CHECK(found.bandwidth == 192'000 * 3 / 4);
  CHECK(found.latency == 8'000 + 3 * (14'000 * 10) / 35 + 2'800 * 8);
}

}  // namespace lockstep::nccl_model_test
