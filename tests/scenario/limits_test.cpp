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

TEST_CASE("messages of every worker with its servers count, since nobody stands for others") {
  // 1,024 workers, 21 iterations and at least 16 ops for each of ResNet-50's 161 tensors, 60 bytes each: 3.3
  // GB.
  Scenario scenario = load_resnet({{"simulation.iterations", "20"}});
  CHECK_NOTHROW(check_memory(scenario, {.ranks = 1'024}));
  scenario.training.strategy = "ps_sync";
  CHECK_THROWS_AS(check_memory(scenario, {.ranks = 1'024}), ConfigError);
  Scenario large = load_resnet({{"cluster.nodes", "12500"}});
  CHECK(find_limit_problems(large).empty());
  large.training.strategy = "ps_sync";
  CHECK_FALSE(find_limit_problems(large).empty());
}

TEST_CASE("a strategy that gathers weights counts its gathers in every micro-batch") {
  // DDP writes two kernels for each of 175 layers and 30 micro-batches, on 1,024 ranks in 2 iterations, 60
  // bytes each: 30 x 350 x 2,048 x 60 = 1.3 GB. At least 3 collectives a layer, of 2 ops, add 30 x 1,050: 3.9
  // GB more.
  Scenario scenario = load_resnet({{"training.gradient_accumulation", "30"}});
  CHECK_NOTHROW(check_memory(scenario, {.ranks = 1'024}));
  scenario.training.strategy = "fsdp";
  CHECK_THROWS_AS(check_memory(scenario, {.ranks = 1'024}), ConfigError);
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

}  // namespace
}  // namespace lockstep
