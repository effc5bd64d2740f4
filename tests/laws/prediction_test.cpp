// A prediction is the same whatever was predicted before it.

#include "sim/report/prediction.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/report/report_json.h"
#include "tests/support/scenarios.h"
#include "tests/support/shipped_scenarios.h"

namespace lockstep::prediction_law {

std::string told(const Prediction& prediction) {
  return to_json(prediction.report, prediction.scenario).dump();
}

TEST_CASE("every scenario is told alike by itself and by who has predicted it, and others, before") {
  ClusterStore clusters;
  for (const std::string& file : shipped_scenarios()) {
    CAPTURE(file);
    const LoadedScenario scenario = load({.path = file});
    const std::string alone = told(predict(scenario));
    CHECK(told(predict(scenario, {.with_times = false})) == alone);
    CHECK(told(predict(scenario, {.clusters = &clusters})) == alone);
    CHECK(told(predict(scenario, {.clusters = &clusters})) == alone);
  }
}

TEST_CASE("every scenario's iteration is the same with and without all that a report says beside it") {
  for (const std::string& file : shipped_scenarios()) {
    CAPTURE(file);
    const Prediction whole = predict(load({.path = file}), {.with_band = false});
    CHECK(predict_iteration(whole.scenario) == whole.report.iteration);
    CHECK_FALSE(whole.report.times.low);
  }
}

// Whatever of the cluster one variant changes, the next finds its own.
TEST_CASE("Variants of one base are told as if each were alone") {
  const LoadRequest base{.path = LOCKSTEP_SOURCE_DIR "/scenarios/resnet50_ddp_2x8_a100.json"};
  const std::vector<Overrides> all{
      {},
      {{"cluster.nodes", "3"}},
      {{"cluster.gpus_per_node", "4"}},
      {{"cluster.machine.nics.count", "4"}},
      {{"cluster.machine", "dgx_h100"}},
      {{"communication.algorithm", "ring"}},
      {{"communication.channels", "2"}},
      {{"communication.library_version", "\"2.18.3\""}},
      {{"cluster.stragglers", R"([{"rank": 3, "slowdown": 1.2}])"}},
      {{"cluster.stragglers", R"([{"rank": 11, "slowdown": 1.2}])"}},
      {{"cluster.slow_links", R"([{"node": 1, "slowdown": 2}])"}},
      {{"training.strategy", "zero3"}},
      {{"training.strategy", "ps_sync"}, {"training.bucket_cap_mb", "null"}},
      {{"simulation.fidelity", "step"}},
      {{"training.bucket_cap_mb", "1"}},
      {{"model.batch_per_gpu", "64"}},
  };
  const ScenarioVariants variants(base);
  for (int again = 0; again < 2; ++again)
    for (const Overrides& changes : all) {
      CAPTURE(changes.empty() ? "" : changes.front().first + "=" + changes.front().second);
      LoadRequest alone = base;
      alone.overrides = changes;
      const auto expected = [&]() -> std::string {
        try {
          return told(predict(load(alone)));
        } catch (const ConfigError& error) {
          return error.what();
        }
      }();
      const auto found = [&]() -> std::string {
        try {
          return told(variants.predict(variants.load({.changes = changes})));
        } catch (const ConfigError& error) {
          return error.what();
        }
      }();
      CHECK(found == expected);
    }
}

}  // namespace lockstep::prediction_law
