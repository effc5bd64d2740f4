#include "sim/scenario/read_training.h"

#include <doctest/doctest.h>

#include "sim/collectives/collective.h"
#include "tests/scenario/lab.h"

namespace lockstep {
namespace {

using testing::load_lab;

double first_bucket(Overrides overrides) {
  return load_lab(std::move(overrides)).training.first_bucket_mb;
}

TEST_CASE("PyTorch 1.x makes the first bucket 1 MiB whatever the cap") {
  CHECK(first_bucket({{"training.framework_version", "\"1.13\""}}) == 1);
  CHECK(first_bucket({{"training.framework_version", "\"1.13.1\""}, {"training.bucket_cap_mb", "50"}}) == 1);
}

TEST_CASE("PyTorch whose cap may be unset makes the first bucket 1 MiB only then") {
  CHECK(first_bucket({}) == 1);
  CHECK(first_bucket({{"training.bucket_cap_mb", "25"}}) == 25);
  CHECK(first_bucket({{"training.framework_version", "\"2.3\""}, {"training.bucket_cap_mb", "50"}}) == 1);
  CHECK(first_bucket({{"training.framework_version", "\"2.4\""}, {"training.bucket_cap_mb", "50"}}) == 50);
  CHECK(first_bucket({{"training.framework_version", "\"2.10\""}, {"training.bucket_cap_mb", "50"}}) == 50);
}

TEST_CASE("a first bucket that is stated holds in every version") {
  CHECK(first_bucket({{"training.first_bucket_mb", "0.5"}, {"training.bucket_cap_mb", "50"}}) == 0.5);
  CHECK(first_bucket({{"training.framework_version", "\"1.13\""}, {"training.first_bucket_mb", "2"}}) == 2);
}

TEST_CASE("what is left out has PyTorch's defaults") {
  const TrainingSpec training = load_lab().training;
  CHECK(training.framework == "pytorch_ddp");
  CHECK(training.framework_version == "2.8");
  CHECK(training.bucket_cap_mb == 25);
  CHECK(training.gradient_accumulation == 1);
  CHECK(training.broadcast_buffers);
  CHECK_FALSE(training.gradient_as_bucket_view);
  CHECK(training.compression == Compression::none);
}

TEST_CASE("the scenario's library beats the machine's") {
  const Scenario scenario = load_lab({{"communication.library", "nccl"}});
  CHECK(scenario.communication.library == LibraryKind::nccl);
  CHECK(scenario.communication.collectives_in_flight == 1);
  CHECK(scenario.cluster.calibration.name != "cpu_gloo");
}

TEST_CASE("ratios become whole parts per million, rounded half up") {
  const ComputeSpec compute =
      load_lab({{"compute.scale", "1.25"}, {"compute.slowdown_during_communication", "1.0000015"}}).compute;
  CHECK(compute.scale_ppm == 1'250'000);
  CHECK(compute.slowdown_during_communication_ppm == 1'000'002);
}

TEST_CASE("every name that is listed as valid loads") {
  for (const std::string& algorithm : valid_algorithms()) {
    // What the lab's switches lack is said so; everything else loads.
    const Collective* collective = Registry<Collective>::find(algorithm);
    if (collective == nullptr || collective->lacks == nullptr) {
      CHECK(load_lab({{"communication.algorithm", algorithm}}).communication.algorithm == algorithm);
    }
  }
  for (const std::string& strategy : valid_strategies()) {
    const Scenario scenario = load_lab({{"training.strategy", strategy}, {"cluster.nodes", "1"}});
    CHECK(scenario.training.strategy == strategy);
  }
  for (const std::string& framework : valid_frameworks()) {
    CHECK(load_lab({{"training.framework", framework}}).training.framework == framework);
  }
}

}  // namespace
}  // namespace lockstep
