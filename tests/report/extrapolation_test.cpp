#include "sim/report/extrapolation.h"

#include <doctest/doctest.h>

namespace lockstep::extrapolation_test {

// Fitted to 16 ranks on 4 nodes and to messages of 8 B to 1 MiB.
ClusterSpec cluster_of(std::int64_t nodes, std::int64_t gpus_per_node) {
  ClusterSpec cluster;
  cluster.calibration.name = "mine";
  cluster.calibration.fitted =
      FittedRange{.smallest = Bytes{8}, .largest = Bytes{1 << 20}, .most_ranks = 16, .most_nodes = 4};
  cluster.nodes = nodes;
  cluster.gpus_per_node = gpus_per_node;
  return cluster;
}

std::size_t scale_warnings(const ClusterSpec& cluster) {
  std::vector<std::string> warnings;
  warn_beyond_fitted_scale(cluster, warnings);
  return warnings.size();
}

std::size_t size_warnings(const ClusterSpec& cluster, std::int64_t smallest, std::int64_t largest) {
  std::vector<std::string> warnings;
  warn_beyond_fitted_sizes(cluster, Bytes{smallest}, Bytes{largest}, warnings);
  return warnings.size();
}

TEST_CASE("One rank or node more than was fitted is an extrapolation, as many are none") {
  CHECK(scale_warnings(cluster_of(4, 4)) == 0);
  CHECK(scale_warnings(cluster_of(5, 1)) == 1);
  CHECK(scale_warnings(cluster_of(1, 17)) == 1);
}

TEST_CASE("Sizes are extrapolated one byte beyond those that were fitted") {
  CHECK(size_warnings(cluster_of(2, 2), 8, 1 << 20) == 0);
  CHECK(size_warnings(cluster_of(2, 2), 7, 1 << 20) == 1);
  CHECK(size_warnings(cluster_of(2, 2), 8, (1 << 20) + 1) == 1);
}

TEST_CASE("Nothing is said of one rank, nor where the range is not known") {
  CHECK(size_warnings(cluster_of(1, 1), 1, 1 << 30) == 0);
  ClusterSpec cluster = cluster_of(100, 8);
  cluster.calibration.fitted.reset();
  CHECK(scale_warnings(cluster) == 0);
  CHECK(size_warnings(cluster, 1, 1 << 30) == 0);
}

}  // namespace lockstep::extrapolation_test
