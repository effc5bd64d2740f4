// What is refused for the time that it would take, against what is simulated.

#include <algorithm>
#include <string>
#include <vector>

#include "sim/training/strategy.h"
#include "tests/support/property.h"
#include "tests/support/scenarios.h"

namespace lockstep::time_limit_test {

using Json = nlohmann::ordered_json;

Json model(bool has_experts) {
  Json model{{"family", "transformer"},
             {"style", has_experts ? "llama" : "gpt2"},
             {"layers", 8},
             {"hidden", *rc::gen::element(64, 1024)},
             {"heads", 8},
             {"vocabulary", *rc::gen::element(1'024, 50'257)},
             {"sequence_length", *rc::gen::element(128, 1'024)},
             {"precision", *rc::gen::element<std::string>("fp32", "bf16", "amp_fp16")}};
  if (has_experts)
    model.update({{"experts", 8}, {"experts_per_token", 2}});
  return model;
}

std::vector<Json> layouts() {
  return {Json::object(),
          {{"tensor_parallel", 8}, {"sequence_parallel", true}},
          {{"context_parallel", 4}, {"tensor_parallel", 2}},
          {{"expert_parallel", 4}, {"expert_imbalance", 1.5}},
          {{"pipeline_parallel", 4}},
          {{"pipeline_parallel", 2}, {"pipeline_schedule", "zb_v"}, {"tensor_parallel", 4}}};
}

Json drawn_scenario() {
  Json training = *rc::gen::elementOf(layouts());
  training["strategy"] = *rc::gen::elementOf(strategies_in_order());
  training["micro_batch"] = *rc::gen::element(1, 4);
  training["gradient_accumulation"] = *rc::gen::element(1, 8);
  training["recompute"] = *rc::gen::element<std::string>("none", "selective", "full");
  const bool has_experts = training.contains("expert_parallel");
  return {{"name", "limit"},
          {"cluster",
           {{"machine", *rc::gen::element<std::string>("dgx_a100_80gb", "dgx1_v100", "dgx_h100")},
            {"nodes", *rc::gen::element(1, 2)}}},
          {"model", model(has_experts)},
          {"training", training}};
}

std::optional<LoadedScenario> loaded(const Json& given) {
  try {
    return scenario_from(given);
  } catch (const ConfigError&) {
    return std::nullopt;  // these do not go together
  }
}

constexpr double limit_s = 4'611'686;  // 2^62 ps
constexpr std::int64_t most_iterations = 100'000;

std::string problem_of(const Json& given) {
  try {
    scenario_from(given);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// So many iterations that they would take a tenth of the clock, or as many as there may be.
TEST_CASE("iterations that the clock holds are not refused") {
  int simulated = 0;
  check_for_all(150, "limits of time", [&] {
    Json given = drawn_scenario();
    const auto scenario = loaded(given);
    if (!scenario)
      return;
    ++simulated;
    const double iteration = summarise(*scenario, simulate(*scenario)).iteration.in_seconds();
    given["simulation"]["iterations"] =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(limit_s / iteration / 10), 1, most_iterations);
    if (const std::string problem = problem_of(given); !problem.empty())
      RC_FAIL(problem + " " + given.dump());
  });
  CHECK(simulated > 20);
}

// Llama 3 70B takes 18 s here: 10,000 iterations are two days of the clock, each with its own jitter.
TEST_CASE("a long run of a large model with jitter is accepted") {
  CHECK(problem_of({{"name", "long"},
                    {"cluster",
                     {{"machine", "dgx_h100"},
                      {"nodes", 8},
                      {"jitter", {{"distribution", "lognormal"}, {"coefficient_of_variation", 0.02}}}}},
                    {"model", {{"name", "llama3_70b"}, {"sequence_length", 8192}, {"precision", "bf16"}}},
                    {"training",
                     {{"strategy", "fsdp"},
                      {"tensor_parallel", 4},
                      {"context_parallel", 2},
                      {"micro_batch", 1},
                      {"gradient_accumulation", 32}}},
                    {"simulation", {{"iterations", 10'000}}}})
            .empty());
}

// A terabyte and more of gradients over a wire of 125 MB/s: three hours an iteration at best.
TEST_CASE("what a strategy sends over all wires counts") {
  Json given{{"name", "slow"},
             {"cluster", {{"machine", "cpu_gloo"}, {"nodes", 2}}},
             {"model", {{"name", "gpt3_175b"}, {"batch_per_gpu", 1}, {"sequence_length", 1}, {"precision", "fp32"}}},
             {"training", {{"strategy", "ddp"}}},
             {"simulation", {{"iterations", most_iterations}}}};
  CHECK(problem_of(given).find("53 days") != std::string::npos);
}

// The same wires, and next to nothing sent over them: models that are averaged every thousand steps, a rank alone.
TEST_CASE("what is sent now and then counts by how often, and what is sent to nobody not at all") {
  Json given{{"name", "rare"},
             {"cluster", {{"machine", "cpu_gloo"}, {"nodes", 2}}},
             {"model",
              {{"layers",
                {{{"name", "a"},
                  {"forward_time", "1 ms"},
                  {"backward_time", "1 ms"},
                  {"parameters", {8'000'000'000}}}}},
               {"batch_per_gpu", 1}}},
             {"training", {{"strategy", "local_sgd"}, {"local_steps", 1'000}}},
             {"simulation", {{"iterations", most_iterations}}}};
  CHECK(problem_of(given).find("53 days") == std::string::npos);
  given["training"] = {{"strategy", "ddp"}};
  CHECK(problem_of(given).find("53 days") != std::string::npos);
  given["cluster"] = {{"machine", "cpu_gloo"}, {"nodes", 1}};
  CHECK(problem_of(given).find("53 days") == std::string::npos);
}

// 20 days an iteration are possible, and a rank that is ten times as slow needs 200, more than 2^63 ps.
TEST_CASE("times that outgrow the clock as they are added are the scenario's mistake") {
  const Json given{{"name", "days"},
                   {"cluster",
                    {{"machine", "dgx1_v100"}, {"nodes", 1}, {"stragglers", {{{"rank", 0}, {"slowdown", 10}}}}}},
                   {"model",
                    {{"layers",
                      {{{"name", "a"},
                        {"forward_time", "10 days"},
                        {"backward_time", "10 days"},
                        {"parameters", {8}}}}},
                     {"batch_per_gpu", 1}}},
                   {"training", {{"strategy", "ddp"}}},
                   {"simulation", {{"iterations", 1}}}};
  const LoadedScenario scenario = scenario_from(given);
  CHECK_THROWS_WITH_AS(simulate(scenario), doctest::Contains("too large together"), ConfigError);
}

}  // namespace lockstep::time_limit_test
