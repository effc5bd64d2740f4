#include "sim/scenario/limits.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tests/scenario/lab.h"

namespace lockstep {
namespace {

using testing::load_lab;
using testing::load_resnet;
using testing::problems_of;
using testing::problems_of_lab;
using testing::problems_of_resnet;
using testing::resnet_text;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("steps of every rank of a large cluster are refused with the ways out") {
  // 4,096 ranks of 2 x 4,095 steps and at least 4 buckets, 60 bytes each: more than 8 GB.
  const LoadRequest request{.text = resnet_text,
                            .overrides = {{"cluster.nodes", "512"}},
                            .fold = false,
                            .fidelity = Fidelity::step};
  const std::string found = problems_of(request);
  CHECK(contains(found, "/simulation: "));
  CHECK(contains(found, "2 GB"));
  CHECK(contains(found, "\"flow\""));
  CHECK(contains(found, "fold"));
}

TEST_CASE("a folded flow of a hundred thousand GPUs is accepted") {
  CHECK(load_resnet({{"cluster.nodes", "12500"}}).cluster.ranks() == 100'000);
}

TEST_CASE("the memory check counts what folding left, once that is known") {
  Scenario scenario = load_resnet({{"cluster.nodes", "12500"}});
  scenario.simulation.fidelity = Fidelity::step;
  CHECK_NOTHROW(check_memory(scenario, {.ranks = 8}));
  CHECK_THROWS_AS(check_memory(scenario, {.ranks = 100'000}), ConfigError);
  CHECK_THROWS_AS(check_memory(scenario, {.ranks = 8, .rings = 1'000}), ConfigError);
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

}  // namespace
}  // namespace lockstep
