// What must hold where batches have to be loaded.

#include <doctest/doctest.h>

#include "tests/support/same_report.h"
#include "tests/support/scenarios.h"

namespace lockstep::input_test {

using Json = nlohmann::ordered_json;

// One GPU that computes 100 ms a batch of 64 samples, and whose input costs nothing yet.
Json fed(const std::string& strategy = "single", std::int64_t gpus = 1) {
  return {{"cluster", {{"machine", "dgx_a100_40gb"}, {"gpus_per_node", gpus}}},
          {"model", {{"name", "resnet50"}, {"batch_per_gpu", 64}, {"precision", "amp_fp16"}}},
          {"input", {{"workers", 4}, {"prefetch_factor", 2}}},
          {"training", {{"strategy", strategy}}},
          {"compute", {{"single_gpu_iteration", "100 ms"}}},
          {"simulation", {{"iterations", 5}}}};
}

Report report_of(const Json& given, const Variant& variant = {}) {
  const Scenario scenario = scenario_from(given, variant);
  return summarise(scenario, simulate(scenario));
}

Duration iteration_of(const Json& given) {
  return report_of(given).iteration;
}

TEST_CASE("Input that costs nothing changes nothing, for every strategy that is fed") {
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    if (name == "dp" || name == "ps_async")
      continue;
    Json given = fed(name, name == "single" ? 1 : 4);
    const Report with = report_of(given);
    given.erase("input");
    INFO(name);
    CHECK(first_difference(with, report_of(given)).empty());
    CHECK(with.breakdown.input_stall == Duration::zero());
  }
}

// 64 samples of 4 ms by 4 workers: a batch every 64 ms hides behind 100 ms of computing; of 8 ms, every 128
// ms.
TEST_CASE("An iteration takes the longer of computing and a worker's batch over the number of workers") {
  Json given = fed();
  given["input"]["sample_time"] = "4 ms";
  CHECK(iteration_of(given) == Duration::milliseconds(100));
  given["input"]["sample_time"] = "8 ms";
  CHECK(iteration_of(given) == Duration::milliseconds(128));
  CHECK(report_of(given).breakdown.input_stall == Duration::milliseconds(28));
  given["input"]["workers"] = 8;
  CHECK(iteration_of(given) == Duration::milliseconds(100));
}

// 8 workers on 4 cores prepare half as fast each: 64 x 8 ms x 2 / 8 = 128 ms.
TEST_CASE("Workers share the cores") {
  Json given = fed();
  given["input"]["sample_time"] = "8 ms";
  given["input"]["workers"] = 8;
  given["input"]["cores"] = 4;
  CHECK(iteration_of(given) == Duration::milliseconds(128));
}

// 64 x 1 MB for each of 2 GPUs at 1 GB/s: a rank gets a batch every 128 ms, however many workers wait for it.
TEST_CASE("An iteration takes no less than a rank's share of the storage") {
  for (const std::int64_t workers : {4, 16}) {
    Json given = fed("ddp", 2);
    given["input"]["workers"] = workers;
    given["input"]["sample_bytes"] = "1 MB";
    given["input"]["storage_bandwidth"] = "1 GB/s";
    // Of GPUs that differ one iteration may round to a picosecond more than another: these are alike.
    Scenario scenario = scenario_from(given);
    scenario.cluster.calibration.rank_variation = Ratio{};
    CHECK(summarise(scenario, simulate(scenario)).iteration == Duration::milliseconds(128));
  }
}

TEST_CASE(
    "An overlapped copy hides behind computing until it takes longer, a pinned one never, a pageable one "
    "costs twice") {
  Json given = fed();
  given["cluster"]["machine"] = "v100_8gpu_1xedr";
  given["input"]["tensor_bytes"] = "1 MB";
  const Scenario scenario = scenario_from(given);
  const ClusterSpec& cluster = scenario.cluster;
  REQUIRE(cluster.machine.host.pcie);
  const Duration compute = Duration::milliseconds(100);
  given["input"]["copy"] = "overlapped";
  CHECK(iteration_of(given) == compute);
  given["input"]["copy"] = "pinned";
  const Report pinned = report_of(given);
  CHECK(pinned.iteration == compute + pinned.input->work.copying);
  given["input"]["copy"] = "pageable";
  const Report pageable = report_of(given);
  CHECK(pageable.iteration == compute + pageable.input->work.copying);
  // Twice the bytes at the same rate: rounded up once more at most.
  const Duration twice = pinned.input->work.copying * 2;
  CHECK(pageable.input->work.copying <= twice);
  CHECK(pageable.input->work.copying >= twice - Duration::picoseconds(4));
  given["input"]["tensor_bytes"] = "1 GB";
  given["input"]["copy"] = "overlapped";
  const Report slow = report_of(given);
  CHECK(slow.iteration == slow.input->work.copying);
}

// Without workers 64 x 2 ms are spent before each batch.
TEST_CASE("Without workers the training loop loads, and nothing of it hides") {
  Json given = fed();
  given["input"] = {{"workers", 0}, {"sample_time", "2 ms"}};
  CHECK(iteration_of(given) == Duration::milliseconds(228));
  CHECK(report_of(given).breakdown.input_stall == Duration::milliseconds(128));
}

TEST_CASE("More prefetching never helps where every batch takes as long") {
  for (const char* sample_time : {"1 ms", "6250 us", "9 ms"}) {
    Json given = fed();
    given["input"]["sample_time"] = sample_time;
    given["input"]["prefetch_factor"] = 1;
    const Duration shallow = iteration_of(given);
    given["input"]["prefetch_factor"] = 8;
    INFO(sample_time);
    CHECK(iteration_of(given) == shallow);
  }
}

// 4 micro-batches, a batch every 128 ms from the workers against 25 ms of computing each. Kernels are rounded to
// picoseconds along the running sum, a few hundred of them a micro-batch.
TEST_CASE("Every micro-batch waits for its own batch, in every strategy") {
  const Duration expected = Duration::milliseconds(4 * 128);
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    if (name == "dp" || name == "ps_async")
      continue;
    Json given = fed(name, name == "single" ? 1 : 4);
    given["training"]["gradient_accumulation"] = 4;
    given["input"]["sample_time"] = "8 ms";
    INFO(name);
    const Duration iteration = iteration_of(given);
    CHECK(iteration >= expected - Duration::nanoseconds(1));
    CHECK(iteration <= expected + Duration::nanoseconds(1));
  }
}

TEST_CASE("Folding changes nothing where batches have to be loaded") {
  Json given = fed("ddp", 8);
  given["input"]["sample_time"] = "8 ms";
  CHECK(first_difference(report_of(given), report_of(given, {.fold = false})).empty());
}

// Iteration 1 begins with nothing loaded: one whole batch of 64 x 4 ms by one worker.
TEST_CASE("The first iteration waits for a whole batch") {
  Json given = fed();
  given["input"]["sample_time"] = "4 ms";
  CHECK(report_of(given).times.first == Duration::milliseconds(256 + 100));
}

Json sentences() {
  return {
      {"cluster", {{"machine", "dgx_a100_40gb"}}},
      {"model",
       {{"name", "bert_base"}, {"batch_per_gpu", 8}, {"sequence_length", 512}, {"precision", "amp_fp16"}}},
      {"input",
       {{"lengths", {{"distribution", "lognormal"}, {"mean", 150}, {"coefficient_of_variation", 0.6}}}}},
      {"training", {{"strategy", "ddp"}, {"optimizer", "none"}}},
      {"compute", {{"single_gpu_iteration", "100 ms"}}},
      {"simulation", {{"iterations", 200}}}};
}

TEST_CASE("Samples that are all as long as the model's sequence change nothing") {
  Json given = sentences();
  given["simulation"]["iterations"] = 2;
  given["input"]["lengths"] = {{"mean", 512}, {"coefficient_of_variation", 0}};
  const Report same = report_of(given);
  given.erase("input");
  CHECK(first_difference(same, report_of(given)).empty());
}

// Computing alone, mean over 200 draws of a length whose deviation is at most half its mean: within 4 x 0.5 /
// sqrt(200) = 14 % of the expected, and its own padding says what that is.
TEST_CASE("One rank computes its batches' padded lengths, and grouping by length leaves less padding") {
  Json given = sentences();
  given["cluster"]["gpus_per_node"] = 1;
  given["training"]["strategy"] = "single";
  const auto check = [&] {
    const Report report = report_of(given);
    const double mean_padded = 150 / (1 - *report.input->padding);
    CHECK(report.iteration.in_seconds() == doctest::Approx(0.1 * mean_padded / 512).epsilon(0.14));
    return *report.input->padding;
  };
  const double mixed = check();
  given["input"]["group_by_length"] = true;
  CHECK(check() < mixed / 4);
}

TEST_CASE("Ranks that draw lengths of their own wait for the longest; grouped by length they do not") {
  Json given = sentences();
  const Duration mixed_alone = [&] {
    Json alone = given;
    alone["cluster"]["gpus_per_node"] = 1;
    return iteration_of(alone);
  }();
  CHECK(iteration_of(given) > mixed_alone + Duration::milliseconds(10));
  given["input"]["group_by_length"] = true;
  Json alone = given;
  alone["cluster"]["gpus_per_node"] = 1;
  const Duration grouped = iteration_of(given);
  // What is left over one GPU is the communication of DDP, which is exposed at most wholly.
  CHECK(grouped - iteration_of(alone) <= report_of(given).communication.total);
}

}  // namespace lockstep::input_test
