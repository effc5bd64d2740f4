// Did anything change? Every shipped scenario against the bytes it gave before.
//
// LOCKSTEP_UPDATE_GOLDEN=1 rewrites the files: look at the difference, then commit it with the change.

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/load/load.h"
#include "sim/report/prediction.h"
#include "sim/report/report_json.h"
#include "sim/study/answers/strategy_comparison.h"
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

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_updating() {
  const char* wanted = std::getenv("LOCKSTEP_UPDATE_GOLDEN");
  return wanted != nullptr && std::string(wanted) == "1";
}

// A long document's first difference is what a person wants to see.
std::string first_difference(const std::string& expected, const std::string& found) {
  std::istringstream left(expected);
  std::istringstream right(found);
  std::string a;
  std::string b;
  for (int line = 1;; ++line) {
    const bool has_left = static_cast<bool>(std::getline(left, a));
    const bool has_right = static_cast<bool>(std::getline(right, b));
    if (!has_left && !has_right)
      return "";
    if (has_left != has_right || a != b)
      return "line " + std::to_string(line) + ": expected " + (has_left ? a : "the end") + ", found " +
             (has_right ? b : "the end");
  }
}

TEST_CASE("Every shipped scenario predicts the bytes it predicted before") {
  for (const fs::path scenario : shipped_scenarios()) {
    const fs::path golden = below_source("tests/golden") / (scenario.stem().string() + ".json");
    INFO(scenario.filename().string());
    const std::string found = predicted(scenario.string());
    if (is_updating())
      std::ofstream(golden, std::ios::binary) << found;
    REQUIRE_MESSAGE(fs::exists(golden), "no golden file yet: run with LOCKSTEP_UPDATE_GOLDEN=1");
    CHECK(first_difference(contents(golden), found) == "");
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
