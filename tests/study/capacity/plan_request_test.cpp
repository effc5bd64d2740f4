// Requests: what is read of them, and what is wrong with them.

#include "sim/study/capacity/plan_request.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "sim/study/capacity/plan_options.h"
#include "tests/scenario/lab.h"

namespace lockstep::plan_request_test {

const std::string plain = R"({
  "model": {"name": "resnet50", "batch_per_gpu": 64},
  "goal": {"samples": 1e6},
  "candidates": [{"machine": "dgx_a100_80gb", "nodes": "1:8:x2"}]
})";

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  return text.replace(text.find(what), what.size(), with);
}

PlanRequest read(const std::string& text) {
  const testing::Folder folder;
  return read_plan_request(folder.write("request.json", text));
}

std::string problems_of(const std::string& text) {
  try {
    read(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

void check_refused(const std::string& what, const std::string& with, const std::string& says) {
  const std::string problems = problems_of(replaced(plain, what, with));
  CAPTURE(with);
  CAPTURE(problems);
  CHECK(problems.find(says) != std::string::npos);
}

TEST_CASE("a request is a goal and candidates, the rest a scenario on the first of them") {
  const PlanRequest request = read(plain);
  CHECK(request.goal.unit == WorkUnit::samples);
  CHECK(request.goal.amount == 1'000'000);
  REQUIRE(request.candidates.size() == 1);
  CHECK(request.candidates.front().nodes == std::vector<std::int64_t>{1, 2, 4, 8});
  CHECK(request.scenario["model"]["name"] == "resnet50");
  CHECK(request.scenario["cluster"]["nodes"] == 1);
  CHECK(request.scenario["training"].empty());
}

TEST_CASE("nodes are a number, a list or a range") {
  const auto nodes = [](const std::string& text) {
    return read(replaced(plain, "\"1:8:x2\"", text)).candidates.front().nodes;
  };
  CHECK(nodes("3") == std::vector<std::int64_t>{3});
  CHECK(nodes("[4, 2, 4]") == std::vector<std::int64_t>{2, 4});
  CHECK(nodes("\"8:24:+8\"") == std::vector<std::int64_t>{8, 16, 24});
}

TEST_CASE("a strategy is a name or a change of what training says") {
  const PlanRequest request = read(replaced(
      plain, "\"nodes\"", R"("strategies": ["fsdp", {"strategy": "zero1", "micro_batch": 2}], "nodes")"));
  REQUIRE(request.candidates.front().strategies.size() == 2);
  CHECK(request.candidates.front().strategies[0] == Overrides{{"training.strategy", "fsdp"}});
  CHECK(request.candidates.front().strategies[1] ==
        Overrides{{"training.strategy", "zero1"}, {"training.micro_batch", "2"}});
}

TEST_CASE("what is wrong with a request is said with its place") {
  check_refused("\"samples\": 1e6", "\"samples\": 0", "/goal/samples: found 0");
  check_refused("\"samples\": 1e6", "\"samples\": 1e6, \"tokens\": 5", "both tokens and samples");
  check_refused("\"samples\": 1e6", "\"deadline\": \"1 day\"", "expected tokens or samples");
  check_refused("1e6}", "1e6, \"deadline\": \"-3 days\"}", "/goal/deadline: found \"-3 days\"");
  check_refused("1e6}", "1e6, \"deadline\": \"0 s\"}", "a time from now on");
  check_refused("1e6}", "1e6, \"deadline\": \"2020-01-01\"}", "/goal/deadline: found \"2020-01-01\"");
  check_refused("1e6}", "1e6, \"budget_usd\": -5}", "/goal/budget_usd: found -5");
  check_refused("1e6}", "1e6, \"budget_usd\": 0}", "US dollars above 0");
  check_refused("1e6}", "1e6, \"budget\": 5}", "did you mean \"budget_usd\"?");
  check_refused("\"1:8:x2\"", "\"8:1:x2\"", "/candidates/0/nodes: found \"8:1:x2\"");
  check_refused("\"1:8:x2\"", "[]", "/candidates/0/nodes: found an array");
  check_refused("\"1:8:x2\"", "0", "/candidates/0/nodes: found 0");
  check_refused("\"1:8:x2\"", "1.5", "/candidates/0/nodes: found 1.5");
  check_refused("\"nodes\"", "\"usd_per_gpu_hour\": -1, \"nodes\"",
                "/candidates/0/usd_per_gpu_hour: found -1");
  check_refused("\"nodes\"", "\"eur_per_gpu_hour\": 1, \"nodes\"", "did you mean \"usd_per_gpu_hour\"?");
  check_refused("\"nodes\"", "\"strategies\": [], \"nodes\"", "at least one strategy");
  check_refused("\"nodes\"", "\"layouts\": \"all\", \"nodes\"", "/candidates/0/layouts: found \"all\"");
  CHECK(problems_of(R"({"goal": {}, "candidates": []})")
            .find("/candidates: found an array, expected at least one machine") != std::string::npos);
}

TEST_CASE("a machine that is not known, or has no price where one is needed, is said of the candidate") {
  const auto options_of = [](const std::string& text) -> std::string {
    const PlanRequest request = read(text);
    const ScenarioVariants variants(base_of(request, LOCKSTEP_SOURCE_DIR, false));
    try {
      plan_options(request, variants);
      objective_of(request, variants);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(options_of(plain).empty());
  CHECK(options_of(replaced(plain, "dgx_a100_80gb", "dgx_a100_90gb")).find("/candidates/0/machine: found") !=
        std::string::npos);
  const std::string unpriced = replaced(plain, "dgx_a100_80gb", "dgx2_v100");
  CHECK(options_of(unpriced).empty());
  CHECK(options_of(replaced(unpriced, "1e6}", "1e6, \"budget_usd\": 5}")).find("has no price") !=
        std::string::npos);
}

}  // namespace lockstep::plan_request_test
