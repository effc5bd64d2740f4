#include "sim/scenario/long_run.h"

#include <doctest/doctest.h>

#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Collectives leave the kernels beside them alone, so that nothing is rounded on the way.
Json jittery(const std::string& strategy, std::int64_t iterations) {
  return {{"cluster",
           {{"machine", "dgx_a100_40gb"},
            {"nodes", strategy == "single" ? 1 : 2},
            {"gpus_per_node", strategy == "single" ? 1 : 2},
            {"jitter", {{"distribution", "gamma"}, {"coefficient_of_variation", 0.1}}}}},
          {"model", {{"name", "resnet50"}, {"batch_per_gpu", 32}, {"precision", "amp_fp16"}}},
          {"training", {{"strategy", strategy}}},
          {"compute", {{"slowdown_during_communication", 1}}},
          {"simulation", {{"iterations", iterations}}}};
}

std::vector<std::string> strategies() {
  std::vector<std::string> names;
  for (const char* name : {"single", "ddp", "zero1", "zero2", "zero3", "fsdp", "local_sgd"})
    if (Registry<Strategy>::find(name) != nullptr)
      names.emplace_back(name);
  return names;
}

LongRun run_in_windows_of(std::int64_t window, const Json& given) {
  Scenario scenario = scenario_from(given);
  scenario.simulation.window = window;
  return *simulate(scenario).long_run;
}

TEST_CASE("Windows give the iterations of one plan of them all") {
  for (const std::string& strategy : strategies()) {
    INFO(strategy);
    const Json given = jittery(strategy, 20);
    const LongRun whole = run_in_windows_of(21, given);
    const LongRun parts = run_in_windows_of(4, given);
    CHECK(parts.iterations == whole.iterations);
    CHECK(parts.critical == whole.critical);
    CHECK(parts.lengths.minimum() == whole.lengths.minimum());
    CHECK(parts.lengths.maximum() == whole.lengths.maximum());
    CHECK(parts.lengths.mean() == whole.lengths.mean());
    for (std::size_t i = 0; i < whole.accounts.size(); ++i) {
      CHECK(parts.accounts[i].total() == whole.accounts[i].total());
      CHECK(parts.accounts[i].straggler_wait == whole.accounts[i].straggler_wait);
      CHECK(parts.accounts[i].communicating == whole.accounts[i].communicating);
    }
  }
}

// The short run that shows the details writes every kernel; its iteration after the warm-up is the long
// run's first.
TEST_CASE("Merged kernels take the time of the kernels") {
  for (const std::string& strategy : strategies()) {
    INFO(strategy);
    Json given = jittery(strategy, 1);
    if (strategy == "local_sgd")
      given["training"]["local_steps"] = 1;
    const Simulation simulation = simulate(scenario_from(given));
    const Run& run = simulation.steady;
    TimeKeeper keeper(run.plan, run.lanes);
    std::vector<Time> ends(run.lanes.compute.size());
    keeper.account(run.timeline, run.iterations[0], ends);
    const std::vector<TimeAccount> fine = keeper.account(run.timeline, run.iterations[1], ends);
    const std::vector<TimeAccount>& merged = simulation.long_run->accounts;
    REQUIRE(merged.size() == fine.size());
    for (std::size_t i = 0; i < fine.size(); ++i) {
      CHECK(merged[i].total() == fine[i].total());
      CHECK(merged[i].straggler_wait == fine[i].straggler_wait);
      CHECK(merged[i].of(Category::communication) == fine[i].of(Category::communication));
      CHECK(merged[i].overlapped == fine[i].overlapped);
      CHECK(merged[i].of(Category::forward).in_seconds() ==
            doctest::Approx(fine[i].of(Category::forward).in_seconds()).epsilon(1e-9));
      CHECK(merged[i].of(Category::backward).in_seconds() ==
            doctest::Approx(fine[i].of(Category::backward).in_seconds()).epsilon(1e-9));
    }
  }
}

// Interference makes each kernel round up where its link's rate is no whole number.
TEST_CASE("Beside collectives that slow kernels down merged kernels are off by less than 0.1 %") {
  for (const std::string& strategy : strategies()) {
    INFO(strategy);
    Json given = jittery(strategy, 1);
    given["compute"] = Json::object();
    if (strategy == "local_sgd")
      given["training"]["local_steps"] = 1;
    const Simulation simulation = simulate(scenario_from(given));
    const Run& run = simulation.steady;
    TimeKeeper keeper(run.plan, run.lanes);
    std::vector<Time> ends(run.lanes.compute.size());
    keeper.account(run.timeline, run.iterations[0], ends);
    const std::vector<TimeAccount> fine = keeper.account(run.timeline, run.iterations[1], ends);
    for (std::size_t i = 0; i < fine.size(); ++i)
      CHECK(simulation.long_run->accounts[i].total().in_seconds() ==
            doctest::Approx(fine[i].total().in_seconds()).epsilon(0.001));
  }
}

TEST_CASE("Without jitter a long run is one iteration many times") {
  Json given = jittery("ddp", 100);
  given["cluster"].erase("jitter");
  const Report many = summarise(scenario_from(given), simulate(scenario_from(given)));
  given["simulation"]["iterations"] = 1;
  const Report one = summarise(scenario_from(given), simulate(scenario_from(given)));
  CHECK(many.iteration == one.iteration);
  CHECK(many.p5 == one.p5);
  CHECK(many.longest == one.longest);
  CHECK(many.breakdown.exposed_communication.in_seconds() ==
        doctest::Approx(one.breakdown.exposed_communication.in_seconds()).epsilon(1e-9));
  CHECK(many.communication_overlapped == one.communication_overlapped);
}

}  // namespace
}  // namespace lockstep
