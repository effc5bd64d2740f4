// What collectives do to the kernels beside them, in whole steps.

#include "sim/run/beside_communication.h"

#include <doctest/doctest.h>

#include "tests/support/property.h"
#include "tests/support/random_scenario.h"
#include "tests/support/scenarios.h"

namespace lockstep::beside_communication_test {

using Json = nlohmann::ordered_json;

Report report_of(const Scenario& scenario) {
  return summarise(scenario, simulate(scenario));
}

Json resnet50(std::int64_t gpus) {
  return {{"cluster", {{"machine", "dgx_a100_40gb"}, {"gpus_per_node", gpus}}},
          {"model", {{"name", "resnet50"}, {"batch_per_gpu", 64}, {"precision", "amp_fp16"}}},
          {"training", {{"strategy", "ddp"}}}};
}

Duration backward_of(Json given, const Json& compute) {
  given["compute"] = compute;
  return report_of(scenario_from(given)).breakdown.backward;
}

TEST_CASE("Computing beside collectives takes longer, and at most twice as long") {
  const Duration alone = backward_of(resnet50(8), {{"slowdown_during_communication", 1}});
  const Duration beside = backward_of(resnet50(8), Json::object());
  CHECK(beside > alone);
  CHECK(beside < alone * 2);
}

TEST_CASE("Without communication nothing is slowed") {
  const Json nothing = Json::object();
  CHECK(backward_of(resnet50(1), nothing) ==
        backward_of(resnet50(1), {{"slowdown_during_communication", 1}}));
  Json apart = resnet50(8);
  apart["communication"]["overlap"] = false;
  CHECK(backward_of(apart, nothing) == backward_of(apart, {{"slowdown_during_communication", 1}}));
}

// A kernel beside a collective still does half of its work: waiting for the collective it would do none.
TEST_CASE("Computing beside communication is never slower than one after the other") {
  check_for_all(100, "overlap", [] {
    Json given = random_scenario();
    Json& calibration = given["cluster"]["machine"]["calibration"];
    calibration.erase("compute_slowdown");
    calibration.erase("sm_interference");
    calibration["core_time_per_byte"] = "0 ps";
    given["communication"]["collectives_in_flight"] = 1;
    RC_LOG(given.dump());
    given["communication"]["overlap"] = false;
    const Duration apart = report_of(scenario_from(given)).iteration;
    given["communication"]["overlap"] = true;
    RC_ASSERT(report_of(scenario_from(given)).iteration <= apart);
  });
}

TEST_CASE("What is stated wins over what was measured, and that over what bounds a kernel") {
  Scenario scenario = scenario_from(resnet50(8));
  CHECK(find_interference(scenario).is_by_bound);
  CHECK(tell_interference(scenario) == "slowed by what bounds each");
  scenario.cluster.calibration.sm_interference = Ratio::percent(360);
  CHECK_FALSE(find_interference(scenario).is_by_bound);
  CHECK(find_interference(scenario).sm_interference == Ratio::percent(360));
  CHECK(tell_interference(scenario) == "slowed as measured on " + scenario.cluster.calibration.name);
  scenario.compute.slowdown_during_communication = Ratio::percent(120);
  CHECK(find_interference(scenario) == Interference{.slowdown = Ratio::percent(120)});
  CHECK(tell_interference(scenario) == "slowed as the scenario states");
}

TEST_CASE("A library on the ranks' cores holds no SMs") {
  Scenario scenario = scenario_from(resnet50(8));
  scenario.communication.library = LibraryKind::gloo;
  CHECK_FALSE(find_interference(scenario).is_by_bound);
}

}  // namespace lockstep::beside_communication_test
