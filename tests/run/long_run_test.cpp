#include "sim/run/long_run.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/support/scenarios.h"

namespace lockstep::long_run_test {

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
  for (const char* name :
       {"single", "ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp", "horovod", "local_sgd"})
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
      CHECK(parts.accounts[i].total().picoseconds() == whole.accounts[i].total().picoseconds());
      CHECK(parts.accounts[i].straggler_wait.picoseconds() == whole.accounts[i].straggler_wait.picoseconds());
      CHECK(parts.accounts[i].communicating.picoseconds() == whole.accounts[i].communicating.picoseconds());
    }
  }
}

// The short run that shows the details writes every kernel; its iteration after the warm-up is the long
// run's first.
std::vector<TimeAccount> kernel_by_kernel(const Run& run) {
  TimeKeeper keeper(run.plan, run.lanes);
  std::vector<Time> ends(run.lanes.compute.size());
  keeper.account(run.timeline, run.iterations[0], ends);
  return keeper.account(run.timeline, run.iterations[1], ends);
}

// A kernel that ends while a copy beside it shares its rate ends at the next picosecond; merged, the sum does.
bool is_within_a_picosecond(Duration a, Duration b) {
  return std::max(a, b) - std::min(a, b) <= Duration::picoseconds(1);
}

TEST_CASE("Merged kernels take the time of the kernels") {
  for (const std::string& strategy : strategies()) {
    INFO(strategy);
    Json given = jittery(strategy, 1);
    if (strategy == "local_sgd")
      given["training"]["local_steps"] = 1;
    const Simulation simulation = simulate(scenario_from(given));
    const std::vector<TimeAccount> fine = kernel_by_kernel(simulation.steady);
    const std::vector<TimeAccount>& merged = simulation.long_run->accounts;
    REQUIRE(merged.size() == fine.size());
    for (std::size_t i = 0; i < fine.size(); ++i) {
      CHECK(is_within_a_picosecond(merged[i].total(), fine[i].total()));
      CHECK(is_within_a_picosecond(merged[i].straggler_wait, fine[i].straggler_wait));
      CHECK(merged[i].of(Category::communication).picoseconds() ==
            fine[i].of(Category::communication).picoseconds());
      CHECK(merged[i].overlapped.picoseconds() == fine[i].overlapped.picoseconds());
      // Where FSDP copies beside a kernel, that one alone is stretched; merged, its neighbours bear it with it.
      CHECK(merged[i].of(Category::forward).in_seconds() ==
            doctest::Approx(fine[i].of(Category::forward).in_seconds()).epsilon(0.002));
      CHECK(merged[i].of(Category::backward).in_seconds() ==
            doctest::Approx(fine[i].of(Category::backward).in_seconds()).epsilon(0.002));
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
    const std::vector<TimeAccount> fine = kernel_by_kernel(simulation.steady);
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
  // Kernels are rounded along the running sum of a plan, so an iteration may differ by a picosecond.
  const auto differs = [](Duration a, Duration b) { return std::abs((a - b).picoseconds()) > 1; };
  CHECK_FALSE(differs(many.iteration, one.iteration));
  CHECK_FALSE(differs(many.times.p5, one.times.p5));
  CHECK_FALSE(differs(many.times.longest, one.times.longest));
  CHECK_FALSE(differs(many.communication.overlapped, one.communication.overlapped));
  CHECK(many.breakdown.exposed_communication.in_seconds() ==
        doctest::Approx(one.breakdown.exposed_communication.in_seconds()).epsilon(1e-9));
}

}  // namespace lockstep::long_run_test
