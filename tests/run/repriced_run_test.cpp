#include "sim/run/repriced_run.h"

#include <doctest/doctest.h>

#include "sim/report/prediction.h"
#include "sim/report/report_json.h"
#include "tests/support/shipped_scenarios.h"
#include "tests/support/two_hosts.h"

namespace lockstep::repriced_run_test {

using Json = nlohmann::ordered_json;

Duration iteration_of(const Simulation& simulation) {
  if (simulation.updates)
    return sum(mean_update(*simulation.updates));
  return mean_iteration(RankView(simulation.steady, critical_representative(simulation.steady)));
}

// Gradients are there at 50, 70 and 90 ms and are sent for 40 ms each, one after another, from 50 ms on.
TEST_CASE("Messages take so many times what they took, and start when they are ready") {
  const Scenario scenario = scenario_from(two_hosts(Json::object()));
  Simulation simulation = simulate(scenario);
  RepricedRun repriced(simulation, scenario);
  const auto at = [&](Ratio factor) {
    repriced.run({.messages = {{Bytes{0}, factor}}});
    return in_milliseconds(iteration_of(simulation));
  };
  CHECK(at(Ratio::one()) == 50 + 3 * 40);
  CHECK(at(Ratio::one() * 2) == 50 + 3 * 80);
  CHECK(at(Ratio::percent(50)) == 90 + 20);
}

// A gradient of 4 MB alone, and two together.
TEST_CASE("A message is priced by its own size") {
  const Scenario scenario = scenario_from(two_hosts({{"bucket_cap_mb", 8}, {"first_bucket_mb", 3}}));
  Simulation simulation = simulate(scenario);
  RepricedRun repriced(simulation, scenario);
  const auto at = [&](Ratio small, Ratio large) {
    repriced.run({.messages = {{Bytes{0}, small}, {Bytes{6'000'000}, large}}});
    return in_milliseconds(iteration_of(simulation));
  };
  CHECK(at(Ratio::one(), Ratio::one()) == 90 + 80);
  CHECK(at(Ratio::one(), Ratio::one() * 2) == 90 + 160);
  CHECK(at(Ratio::one() * 2, Ratio::one()) == 50 + 80 + 80);
}

TEST_CASE("A message that computing hides costs nothing until it surfaces") {
  Json given = two_hosts(Json::object());
  given["model"]["layers"][0]["backward_time"] = "200 ms";  // the last to be computed
  const Scenario scenario = scenario_from(given);
  Simulation simulation = simulate(scenario);
  RepricedRun repriced(simulation, scenario);
  const auto at = [&](Ratio factor) {
    repriced.run({.messages = {{Bytes{0}, factor}}});
    return in_milliseconds(iteration_of(simulation));
  };
  CHECK(at(Ratio::one()) == 270 + 40);          // two of three are hidden
  CHECK(at(Ratio::one() * 2) == 270 + 80);      // they still are
  CHECK(at(Ratio::one() * 4) == 50 + 3 * 160);  // they are not
}

TEST_CASE(
    "In every scenario computing at other prices is that of the scenario with such a scale, to the "
    "picosecond") {
  for (const std::string& file : shipped_scenarios()) {
    CAPTURE(file);
    const LoadedScenario scenario = predict(load({.path = file}), {.with_band = false}).scenario;
    if (is_long_run(scenario))
      continue;  // a run of windows
    Simulation simulation = simulate(scenario);
    RepricedRun repriced(simulation, scenario);
    repriced.run({.compute = Ratio::percent(125)});
    Scenario scaled_scenario = scenario;
    scaled_scenario.compute.scale = scaled_up(scenario.compute.scale, Ratio::percent(125));
    CHECK(iteration_of(simulation) == iteration_of(simulate(scaled_scenario)));
  }
}

// Of one image the GPU waits for each kernel.
TEST_CASE("A step that its host sets the pace of takes so many times as long as the host does") {
  const LoadedScenario scenario =
      scenario_from({{"cluster",
                      {{"machine", {{"based_on", "dgx_a100_80gb"}, {"host", {{"operator_time", "200 us"}}}}},
                       {"gpus_per_node", 1}}},
                     {"model", {{"name", "resnet50"}, {"batch_per_gpu", 1}, {"precision", "bf16"}}},
                     {"training", {{"strategy", "single"}}}});
  Simulation simulation = simulate(scenario);
  const Duration before = iteration_of(simulation);
  RepricedRun repriced(simulation, scenario);
  repriced.run({.host = Ratio::percent(150)});
  CHECK(iteration_of(simulation).in_seconds() == doctest::Approx(1.5 * before.in_seconds()).epsilon(1e-6));
  repriced.run({.compute = Ratio::percent(150)});
  CHECK(iteration_of(simulation) == before);
}

TEST_CASE("The simulation is left as it was found") {
  const Scenario scenario = scenario_from(two_hosts(Json::object()));
  Simulation simulation = simulate(scenario);
  const auto told = [&] { return to_json(summarise(scenario, simulation), {}).dump(); };
  const std::string before = told();
  {
    RepricedRun repriced(simulation, scenario);
    repriced.run({.compute = Ratio::one() * 3, .messages = {{Bytes{0}, Ratio::one() * 5}}});
    CHECK(told() != before);
  }
  CHECK(told() == before);
}

TEST_CASE("One rank sends nothing") {
  Json given = two_hosts(Json::object());
  given["cluster"]["nodes"] = 1;
  given["training"] = {{"strategy", "single"}};
  const Scenario scenario = scenario_from(given);
  Simulation simulation = simulate(scenario);
  CHECK_FALSE(RepricedRun(simulation, scenario).sends_messages());
}

}  // namespace lockstep::repriced_run_test
