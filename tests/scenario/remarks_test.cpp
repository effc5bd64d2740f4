// What loading refuses or remarks on before anything is simulated.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/error.h"
#include "tests/support/scenarios.h"

namespace lockstep::remarks_test {

// Three nodes of eight hold six copies of four GPUs, two of them on two nodes at once, whoever synchronises.
TEST_CASE(
    "copies that share some nodes and not others are refused, of strategies that cut their ranks up too") {
  for (const char* strategy : {"ddp", "zero1", "zero3", "fsdp", "hsdp"}) {
    CAPTURE(strategy);
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(
        R"({"cluster": {"machine": "dgx_a100_40gb", "nodes": 3}, "model": {"name": "llama2_7b", "precision": "fp16"},
            "training": {"tensor_parallel": 2, "pipeline_parallel": 2, "micro_batch": 1, "gradient_accumulation": 8}})");
    json["training"]["strategy"] = strategy;
    CHECK_THROWS_AS(scenario_from(json), ConfigError);
  }
}

// Half of a step, or twice a step, depends on it.
TEST_CASE("a style that stores its scores says so where the file does not say which attention is meant") {
  const auto warns = [](const char* model) {
    nlohmann::ordered_json json =
        nlohmann::ordered_json::parse(R"({"cluster": {"machine": "dgx_a100_40gb"}})");
    json["model"] = nlohmann::ordered_json::parse(model);
    const LoadedScenario scenario = scenario_from(json);
    return std::any_of(scenario.warnings.begin(), scenario.warnings.end(), [](const std::string& warning) {
      return warning.find("model.attention is not said") != warning.npos;
    });
  };
  CHECK(warns(R"({"name": "gpt2", "batch_per_gpu": 1})"));
  CHECK_FALSE(warns(R"({"name": "gpt2", "attention": "unfused", "batch_per_gpu": 1})"));
  CHECK_FALSE(warns(R"({"name": "gpt2", "attention": "fused", "batch_per_gpu": 1})"));
  CHECK_FALSE(warns(R"({"name": "llama2_7b", "batch_per_gpu": 1})"));
}

}  // namespace lockstep::remarks_test
