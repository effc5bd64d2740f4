#include "sim/report/scaling.h"

#include <doctest/doctest.h>

#include "sim/report/html.h"
#include "sim/report/report_json.h"
#include "sim/report/report_text.h"
#include "sim/run/single_gpu.h"
#include "sim/training/strategy.h"
#include "tests/support/scenarios.h"

namespace lockstep::scaling_test {

using Json = nlohmann::ordered_json;

Json gpt2(const std::string& strategy, std::int64_t nodes = 2) {
  return {{"cluster", {{"machine", "dgx_a100_40gb"}, {"nodes", nodes}}},
          {"model", {{"name", "gpt2"}, {"batch_per_gpu", 4}, {"precision", "bf16"}}},
          {"training", {{"strategy", strategy}, {"optimizer", "adamw"}}}};
}

// 13 G parameters with AdamW in bf16 hold 26 GB of weights alone, and more than 80 GB with the states.
Json llama_13b(const std::string& strategy) {
  Json given = gpt2(strategy, strategy == "dp" ? 1 : 4);
  given["cluster"]["machine"] = "dgx_a100_80gb";
  given["model"]["name"] = "llama2_13b";
  return given;
}

struct Told {
  LoadedScenario scenario;
  Report report;
};

Told tell(const Json& given) {
  const LoadedScenario scenario = scenario_from(given);
  return {scenario, summarise(scenario, simulate(scenario))};
}

// What a rank has to do takes no less than on an undisturbed GPU, so no efficiency can exceed 1. With a model
// that is mostly optimizer, sharding it is what would pass for more.
TEST_CASE("no strategy is more than linear, however much of its step is the optimizer") {
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    if (name == "single")
      continue;
    Json given = gpt2(name, 1);
    given["model"] = {{"measured",
                       {{"forward", "1 ms"},
                        {"backward", "2 ms"},
                        {"optimizer", "500 ms"},
                        {"parameters", {{{"name", "a"}, {"elements", 1000}, {"gradient_ready", "1 ms"}}}}}}};
    given["training"].erase("optimizer");
    const Told told = tell(given);
    INFO(name);
    REQUIRE(told.report.scaling.efficiency);
    // Ranks that meet never meet for nothing; asynchronous workers with a thousand numbers nearly do.
    CHECK((*told.report.scaling.efficiency < 1 || name == "ps_async"));
    CHECK(*told.report.scaling.efficiency <= 1);
    CHECK(*told.report.scaling.efficiency > 0);
  }
}

TEST_CASE("one GPU is as fast as one GPU") {
  Json given = gpt2("single", 1);
  given["cluster"]["gpus_per_node"] = 1;
  CHECK(tell(given).report.scaling.efficiency == 1.0);
}

// ddp: forward, backward and the whole optimizer over the iteration.
TEST_CASE("where every rank updates everything the work is the one GPU's step") {
  const Told told = tell(gpt2("ddp"));
  CHECK(*told.report.scaling.efficiency ==
        doctest::Approx(single_gpu_time(told.scenario).in_seconds() / told.report.iteration.in_seconds()));
}

// zero1 on n ranks: forward F, backward B and an n-th of the optimizer O, each of one GPU.
TEST_CASE("where each of n ranks updates an n-th the optimizer counts as an n-th") {
  Json given = gpt2("zero1");
  given["model"] = {{"measured",
                     {{"forward", "10 ms"},
                      {"backward", "20 ms"},
                      {"optimizer", "16 ms"},
                      {"parameters", {{{"name", "a"}, {"elements", 1000}, {"gradient_ready", "20 ms"}}}}}}};
  given["training"].erase("optimizer");
  const Told told = tell(given);
  CHECK(*told.report.scaling.efficiency ==
        doctest::Approx((0.010 + 0.020 + 0.016 / 16) / told.report.iteration.in_seconds()));
}

// A thousand numbers take no time on their way: what is left of an iteration is the worker's own work.
TEST_CASE(
    "an asynchronous worker's update is its work where servers only add, and theirs where they update") {
  Json given = gpt2("ps_async", 1);
  given["model"] = {{"measured",
                     {{"forward", "10 ms"},
                      {"backward", "20 ms"},
                      {"optimizer", "30 ms"},
                      {"parameters", {{{"name", "a"}, {"elements", 1000}, {"gradient_ready", "20 ms"}}}}}}};
  given["training"].erase("optimizer");
  for (const char* framework : {"tensorflow_ps", "byteps"}) {
    given["training"]["framework"] = framework;
    const Told told = tell(given);
    INFO(framework);
    CHECK(*told.report.scaling.efficiency > 0.98);
    const double work = std::string(framework) == "byteps" ? 0.060 : 0.030;
    CHECK(told.report.iteration.in_seconds() == doctest::Approx(work).epsilon(0.05));
  }
}

TEST_CASE("where one GPU cannot hold the model there is no efficiency but a reason, for every strategy") {
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    Json given = llama_13b(name);
    if (name == "single")
      given["cluster"] = {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 1}};
    const Told told = tell(given);
    INFO(name);
    CHECK_FALSE(told.report.scaling.efficiency);
    CHECK(told.report.scaling.reason.starts_with("one GPU cannot hold the model: it would need"));
    const Json json = to_json(told.report, told.scenario);
    CHECK(json["scaling_efficiency"].is_null());
    CHECK(json["scaling_efficiency_reason"] == told.report.scaling.reason);
    CHECK(to_text(told.report, told.scenario).find("unknown: one GPU cannot hold") != std::string::npos);
    CHECK(to_html(told.report, told.scenario).find("unknown: one GPU cannot hold") != std::string::npos);
  }
}

TEST_CASE("where one GPU can hold the model there is no reason, however it is sharded") {
  for (const char* strategy : {"ddp", "zero3", "fsdp"}) {
    const Told told = tell(gpt2(strategy));
    CHECK(told.report.scaling.efficiency);
    CHECK(to_json(told.report, told.scenario)["scaling_efficiency_reason"].is_null());
  }
}

// Padded or of as many words, the same model is the same on one GPU.
TEST_CASE("A model on one GPU has the words that its ranks have together") {
  const auto efficiency = [](std::int64_t vocabulary, std::int64_t multiple) {
    const Json json{
        {"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 2}}},
        {"model",
         {{"name", "gpt2"}, {"vocabulary", vocabulary}, {"batch_per_gpu", 2}, {"precision", "bf16"}}},
        {"training", {{"strategy", "ddp"}, {"vocabulary_multiple", multiple}}}};
    return predict(scenario_from(json), {.with_band = false}).report.scaling.efficiency.value_or(0);
  };
  CHECK(efficiency(50257, 64) == efficiency(50304, 1));
}

}  // namespace lockstep::scaling_test
