#include "sim/load/limits.h"

#include <doctest/doctest.h>

#include "sim/training/strategy.h"
#include "tests/scenario/lab.h"

namespace lockstep::limits_test {

using testing::load_lab;
using testing::load_resnet;
using testing::problems_of_lab;

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

TEST_CASE("what a strategy sends is bounded by its own numbers") {
  const auto bound = [](const char* name, std::int64_t ranks) {
    TrainingSpec training;
    training.strategy = name;
    return strategy_named(name).sends.at_most(
        {.training = training, .ranks = static_cast<double>(ranks), .tensors = 10, .elements = 1e6, .layers = 4});
  };
  CHECK(bound("ps_sync", 16).volume == 2 * bound("ps_sync", 8).volume);
  CHECK(bound("ddp", 16).volume == bound("ddp", 8).volume);
  CHECK(bound("horovod", 8).collectives == 10);
  CHECK(bound("fsdp", 8).collectives >= 4 * 4);
  CHECK((strategy_named("single").sends.at_most == nullptr));
}

}  // namespace lockstep::limits_test
