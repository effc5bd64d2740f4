#include "sim/study/bench/narrowest_cut.h"

#include <doctest/doctest.h>

namespace lockstep::narrowest_cut_time_test {

constexpr Bytes size{1'000'000'000};

// A GPU has two links of 10 GB/s, a node two NICs of 5 GB/s: 20 GB/s over a GPU's cut, 10 GB/s over a node's.
ClusterSpec cluster_of(std::int64_t nodes, std::int64_t compute_capability = 80) {
  ClusterSpec cluster;
  cluster.nodes = nodes;
  cluster.gpus_per_node = 4;
  cluster.gpu.compute_capability = compute_capability;
  GpuLinks& links = cluster.machine.gpu_links;
  links.kind = GpuLinkKind::nvswitch;
  links.links_per_gpu = 2;
  links.link.bandwidth = Bandwidth{10'000'000'000};
  NicSpec nic;
  nic.link.bandwidth = Bandwidth{5'000'000'000};
  cluster.machine.nics.assign(2, nic);
  return cluster;
}

Duration least(const ClusterSpec& cluster, CollectiveOp op) {
  return narrowest_cut_time(cluster, op, size);
}

// 1 GB over 20 GB/s is 50 ms: once for a broadcast, 2 x 3/4 for an all-reduce, 3/4 for an all-gather.
TEST_CASE("in a node the links of one GPU are the cut") {
  CHECK(least(cluster_of(1), CollectiveOp::broadcast) == Duration::milliseconds(50));
  CHECK(least(cluster_of(1), CollectiveOp::all_reduce) == Duration::milliseconds(75));
  CHECK(least(cluster_of(1), CollectiveOp::all_gather) == Duration::microseconds(37'500));
}

TEST_CASE("where the switch adds, one copy leaves a GPU") {
  CHECK(least(cluster_of(1, 90), CollectiveOp::all_reduce) == Duration::milliseconds(50));
}

// 1 GB over a node's 10 GB/s is 100 ms: of two nodes an all-reduce sends 2 x 1/2 of it, an all-to-all half of what
// each of its four GPUs has. Of four nodes an all-reduce sends 2 x 3/4, and one copy where the fabric adds.
TEST_CASE("between nodes the NICs of one node are the cut, if they are the narrower") {
  CHECK(least(cluster_of(2), CollectiveOp::all_reduce) == Duration::milliseconds(100));
  CHECK(least(cluster_of(2), CollectiveOp::all_to_all) == Duration::milliseconds(200));
  ClusterSpec four = cluster_of(4);
  CHECK(least(four, CollectiveOp::all_reduce) == Duration::milliseconds(150));
  four.fabric.in_network_reduction = true;
  CHECK(least(four, CollectiveOp::all_reduce) == Duration::milliseconds(100));
}

TEST_CASE("a rank alone, and a cut without wires, need no time") {
  ClusterSpec alone = cluster_of(1);
  alone.gpus_per_node = 1;
  CHECK(least(alone, CollectiveOp::all_reduce) == Duration::zero());
  ClusterSpec without = cluster_of(1);
  without.machine.gpu_links.links_per_gpu = 0;
  CHECK(least(without, CollectiveOp::all_reduce) == Duration::zero());
}

}  // namespace lockstep::narrowest_cut_time_test
