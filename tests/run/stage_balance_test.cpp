// How blocks are dealt to stages: by what they take, by what they hold.

#include "sim/run/stage_balance.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/report/report.h"
#include "tests/support/scenarios.h"

namespace lockstep::stage_balance_test {

using Json = nlohmann::ordered_json;
using Counts = std::vector<std::int64_t>;

// One layer for each time in ms, forward and backward alike.
Json stated_layers(const Counts& times, std::int64_t stages, const char* balance) {
  Json layers = Json::array();
  for (const std::int64_t time : times)
    layers.push_back({{"name", "layer" + std::to_string(layers.size())},
                      {"parameters", {time}},
                      {"forward_time", std::to_string(time) + " ms"},
                      {"backward_time", std::to_string(time) + " ms"}});
  return {{"name", "balance"},
          {"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", stages}}},
          {"model", {{"layers", layers}}},
          {"training",
           {{"strategy", "pp"},
            {"micro_batch", 1},
            {"gradient_accumulation", 8},
            {"optimizer", "none"},
            {"stage_layers", balance}}}};
}

Counts blocks_of(const Json& given) {
  return scenario_from(given).training.layout.stage_blocks;
}

TEST_CASE("Stages of alike blocks are even") {
  CHECK(blocks_of(stated_layers(Counts(8, 10), 4, "balanced_time")) == Counts{2, 2, 2, 2});
  CHECK(blocks_of(stated_layers(Counts(8, 10), 4, "even")).empty());
}

// Of 9 and five of 1, a part has the 9; seven of 1 and a 3 can be halved; 2 to 9 in four parts: 14 + 13 + 8 + 9.
TEST_CASE("The longest stage is as short as can be") {
  CHECK(blocks_of(stated_layers({9, 1, 1, 1, 1, 1}, 2, "balanced_time")) == Counts{1, 5});
  CHECK(blocks_of(stated_layers({1, 1, 1, 1, 1, 1, 1, 3}, 2, "balanced_time")) == Counts{5, 3});
  CHECK(blocks_of(stated_layers({2, 3, 4, 5, 6, 7, 8, 9}, 4, "balanced_time")) == Counts{4, 2, 1, 1});
}

// The 6 is the longest whatever the others are.
TEST_CASE("Of ways with an equally long longest stage the most even is taken") {
  CHECK(blocks_of(stated_layers({1, 1, 6, 1, 1, 1}, 3, "balanced_time")) == Counts{2, 1, 3});
  CHECK(blocks_of(stated_layers({6, 1, 1, 1, 1}, 3, "balanced_time")) == Counts{1, 2, 2});
}

Json transformer(const char* balance) {
  return {{"name", "balance"},
          {"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 4}}},
          {"model",
           {{"family", "transformer"},
            {"style", "gpt2"},
            {"layers", 16},
            {"hidden", 1024},
            {"heads", 16},
            {"vocabulary", 262144},
            {"sequence_length", 512},
            {"attention", "fused"},
            {"precision", "bf16"}}},
          {"training",
           {{"strategy", "pp"},
            {"micro_batch", 2},
            {"gradient_accumulation", 16},
            {"optimizer", "adam"},
            {"stage_layers", balance}}}};
}

Report report_of(const Json& given) {
  const LoadedScenario scenario = scenario_from(given);
  return summarise(scenario, simulate(scenario));
}

TEST_CASE("A large head leaves its stage fewer blocks, and the pipeline is faster for it") {
  const Counts blocks = blocks_of(transformer("balanced_time"));
  CHECK(std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0}) == 16);
  CHECK(blocks.back() == *std::min_element(blocks.begin(), blocks.end()));
  CHECK(report_of(transformer("balanced_time")).iteration < report_of(transformer("even")).iteration);
}

// 1F1B keeps four micro-batches on the first stage and one on the last.
TEST_CASE("Balanced by memory the fullest stage holds less, and the first stages take fewer blocks") {
  const auto with_small_head = [](const char* balance) {
    Json given = transformer(balance);
    given["model"]["vocabulary"] = 1024;
    return given;
  };
  const Counts blocks = blocks_of(with_small_head("balanced_memory"));
  CHECK(blocks.front() < blocks.back());
  CHECK(report_of(with_small_head("balanced_memory")).memory.peak.total() <
        report_of(with_small_head("even")).memory.peak.total());
}

TEST_CASE("What balancing finds is what the resolved scenario states") {
  const LoadedScenario balanced = scenario_from(transformer("balanced_time"));
  const Json stated = balanced.resolved.at("training").at("stage_layers");
  CHECK(stated == Json(balanced.training.layout.stage_blocks));
  Json again = transformer("balanced_time");
  again["training"]["stage_layers"] = stated;
  CHECK(report_of(again).iteration == report_of(transformer("balanced_time")).iteration);
}

}  // namespace lockstep::stage_balance_test
