#include "sim/load/limits.h"

#include <doctest/doctest.h>

#include "tests/scenario/lab.h"

namespace lockstep::limits_test {

using testing::load_lab;
using testing::load_resnet;
using testing::problems_of_lab;
using testing::problems_of_resnet;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a folded flow of a hundred thousand GPUs is accepted") {
  CHECK(load_resnet({{"cluster.nodes", "12500"}}).cluster.ranks() == 100'000);
}

TEST_CASE("more than 53 days of simulated time are refused") {
  // 100,000 iterations of 100 s are 116 days.
  const std::string found =
      problems_of_lab({{"simulation.iterations", "100000"}, {"model.layers.0.forward_time", "100 s"}});
  CHECK(contains(found, "/simulation/iterations: found 100000"));
  CHECK(contains(found, "53 days"));
}

TEST_CASE("a link so slow that shares of it fall under a byte per second is refused") {
  CHECK(contains(problems_of_lab({{"cluster.machine.nics.link.bandwidth", "1 B/s"}}), "under 1 B/s"));
}

TEST_CASE("work that does not fit 64 bits is refused") {
  const std::string layer = R"({"forward_flops": "1 EFLOP", "forward_bytes": "1 B"})";
  CHECK(contains(problems_of_lab({{"model.layers.0", layer}, {"model.batch_per_gpu", "1000000"}}),
                 "/model/batch_per_gpu: found 1000000"));
}

TEST_CASE("collnet is refused where the fabric does not say that its switches add, with the words that do") {
  const std::string refused = problems_of_resnet({{"communication.algorithm", "collnet"}});
  CHECK(contains(refused, "/communication/algorithm: found \"collnet\""));
  CHECK(contains(refused, "\"in_network_reduction\": true"));
  CHECK(problems_of_resnet({{"communication.algorithm", "collnet"},
                            {"cluster.fabric", R"({"kind": "single_switch", "in_network_reduction": true})"}})
            .empty());
  CHECK(
      problems_of_resnet({{"communication.algorithm", "collnet"}, {"cluster.fabric", "rail_optimised_sharp"}})
          .empty());
}

}  // namespace lockstep::limits_test
