// A band holds its prediction, and knows more errors only by growing wider.

#include "sim/report/band.h"

#include <doctest/doctest.h>

#include "sim/report/prediction.h"
#include "tests/support/scenarios.h"
#include "tests/support/shipped_scenarios.h"

namespace lockstep::band_law {

struct Ends {
  Duration low, high;
};

Ends ends_of(const LoadedScenario& scenario) {
  const Report report = predict(scenario).report;
  REQUIRE(report.times.low);
  CHECK(*report.times.low <= report.iteration);
  CHECK(*report.times.high >= report.iteration);
  return {*report.times.low, *report.times.high};
}

void widen(ErrorRange& range) {
  range = {range.low - share(Ratio::one() + range.low, 10), range.high + Ratio::percent(20)};
}

bool holds(const Ends& wide, const Ends& narrow) {
  return wide.low <= narrow.low && wide.high >= narrow.high;
}

// Each source by itself; of computing only those that a scenario has can show.
TEST_CASE("every scenario's band holds its prediction, and no wider source narrows it") {
  for (const std::string& file : shipped_scenarios()) {
    CAPTURE(file);
    const LoadedScenario scenario = predict(load({.path = file}), {.with_band = false}).scenario;
    const Ends before = ends_of(scenario);
    for (ErrorRange ErrorModel::*source :
         {&ErrorModel::measured, &ErrorModel::in_node, &ErrorModel::between_nodes, &ErrorModel::transferred,
          &ErrorModel::host}) {
      LoadedScenario wider = scenario;
      widen((*wider.errors).*source);
      CHECK(holds(ends_of(wider), before));
    }
    LoadedScenario unanchored = scenario;
    for (auto& [kind, range] : unanchored.errors->unanchored) widen(range);
    CHECK(holds(ends_of(unanchored), before));
    LoadedScenario messages = scenario;
    for (ResidualBand& band : messages.cluster.calibration.communication_residuals)
      band.high += Ratio::percent(50);
    CHECK(ends_of(messages).high >= before.high);
  }
}

TEST_CASE("a step that nobody measured is known no better than one that was") {
  for (const char* model : {"resnet50", "bert_base", "efficientnet_b0", "gpt2"}) {
    CAPTURE(model);
    nlohmann::ordered_json given{{"cluster", {{"machine", "dgx_a100_40gb"}, {"gpus_per_node", 1}}}};
    given["model"] = {{"name", model}, {"batch_per_gpu", 8}, {"precision", "amp_fp16"}};
    const Report unknown = predict(scenario_from(given)).report;
    given["compute"] = {{"single_gpu_iteration", "1 s"}};
    const Report known = predict(scenario_from(given)).report;
    const auto width = [](const Report& report) {
      return report.times.high->in_seconds() / report.times.low->in_seconds();
    };
    CHECK(width(unknown) >= width(known));
  }
}

}  // namespace lockstep::band_law
