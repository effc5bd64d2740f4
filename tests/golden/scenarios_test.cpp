// Did anything change? Every shipped scenario against the bytes it gave before.

#include <doctest/doctest.h>

#include <filesystem>

#include "sim/load/load.h"
#include "sim/report/prediction.h"
#include "sim/report/report_json.h"
#include "sim/study/answers/strategy_comparison.h"
#include "tests/support/golden_file.h"
#include "tests/support/shipped_scenarios.h"

namespace lockstep::scenarios_test {

namespace fs = std::filesystem;

fs::path below_source(const char* folder) {
  return fs::path(LOCKSTEP_SOURCE_DIR) / folder;
}

std::string predicted(const std::string& scenario_file) {
  const LoadedScenario scenario = load({.path = scenario_file, .data_directory = LOCKSTEP_SOURCE_DIR});
  const auto comparison = scenario.comparison ? std::optional(compare_strategies(scenario)) : std::nullopt;
  return with_comparison(to_json(predict(scenario).report, scenario), comparison).dump(2) + "\n";
}

TEST_CASE("Every shipped scenario predicts the bytes it predicted before") {
  for (const fs::path scenario : shipped_scenarios()) {
    const fs::path golden = below_source("tests/golden") / (scenario.stem().string() + ".json");
    INFO(scenario.filename().string());
    testing::check_golden_file(golden, predicted(scenario.string()));
  }
}

TEST_CASE("Every shipped scenario predicts the same bytes twice") {
  for (const fs::path scenario : shipped_scenarios()) {
    INFO(scenario.filename().string());
    CHECK(predicted(scenario.string()) == predicted(scenario.string()));
  }
}

TEST_CASE("No golden file is left over from a scenario that is gone") {
  for (const auto& entry : fs::directory_iterator(below_source("tests/golden"))) {
    if (entry.path().extension() != ".json")
      continue;
    INFO(entry.path().filename().string());
    CHECK(fs::exists(below_source("scenarios") / entry.path().filename()));
  }
}

}  // namespace lockstep::scenarios_test
