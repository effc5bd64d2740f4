#include "sim/study/answers/layout_candidates.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/training/schedules/pipeline_schedule.h"
#include "tests/support/scenarios.h"

namespace lockstep::layout_candidates_test {

using nlohmann::ordered_json;

ordered_json scenario_on(std::int64_t nodes, std::int64_t layers) {
  ordered_json scenario;
  scenario["cluster"] = {{"machine", "dgx_a100_80gb"}, {"nodes", nodes}};
  scenario["model"] = {
      {"family", "transformer"}, {"layers", layers}, {"hidden", 1024},      {"heads", 8},
      {"kv_heads", 8},           {"ffn", 4096},      {"vocabulary", 32000}, {"precision", "bf16"},
      {"sequence_length", 1024}};
  scenario["training"] = {{"strategy", "ddp"}, {"micro_batch", 1}, {"global_batch", 64}};
  return scenario;
}

std::vector<LayoutCandidate> candidates_of(const ordered_json& scenario) {
  const LoadedScenario base = scenario_from(scenario);
  return layout_candidates(base, {.nodes = base.cluster.nodes, .gpus_per_node = base.cluster.gpus_per_node});
}

std::set<std::string> values_of(const std::vector<LayoutCandidate>& candidates, const std::string& path) {
  std::set<std::string> values;
  for (const LayoutCandidate& candidate : candidates)
    for (const auto& [changed, value] : candidate.overrides())
      if (changed == path)
        values.insert(value);
  return values;
}

TEST_CASE("degrees multiply to the GPUs, and batches to the scenario's") {
  for (const LayoutCandidate& candidate : candidates_of(scenario_on(2, 8))) {
    CHECK(candidate.tensor * candidate.context * candidate.pipeline * candidate.data == 16);
    CHECK(candidate.micro_batch * candidate.micro_batches * candidate.data == 64);
    CHECK(candidate.tensor <= 8);
    // Two parts a stage of two copies are as many as one of one.
    const std::int64_t copies =
        candidate.pipeline > 1 ? pipeline_schedule_named(candidate.schedule).copies : 1;
    CHECK(candidate.pipeline * candidate.virtual_stages / copies <= 8);
    CHECK(candidate.expert == 1);
  }
}

TEST_CASE("every candidate is a scenario that loads, and is what it says") {
  ordered_json scenario = scenario_on(2, 4);
  scenario["training"].update({{"tensor_parallel", 2},
                               {"pipeline_parallel", 4},
                               {"data_parallel", 2},
                               {"pipeline_schedule", "1f1b"},
                               {"stage_layers", {1, 1, 1, 1}},
                               {"gradient_accumulation", 32}});
  const std::vector<LayoutCandidate> candidates = candidates_of(scenario);
  REQUIRE(candidates.size() > 100);
  for (const LayoutCandidate& candidate : candidates) {
    const LoadedScenario loaded = scenario_from(scenario, {.overrides = candidate.overrides()});
    const Layout& layout = loaded.training.layout;
    CHECK(layout.degrees.tensor == candidate.tensor);
    CHECK(layout.degrees.context == candidate.context);
    CHECK(layout.pipeline == candidate.pipeline);
    CHECK(layout.data == candidate.data);
    CHECK(layout.chunks == candidate.virtual_stages);
    CHECK(loaded.model.batch_per_gpu == candidate.micro_batch);
    CHECK(loaded.training.gradient_accumulation == candidate.micro_batches);
  }
}

TEST_CASE("a strategy that names a dimension is one layout, and all others are tried beside it") {
  for (const char* strategy : {"pp", "mp", "tp", "cp"}) {
    INFO(strategy);
    ordered_json scenario = scenario_on(1, 8);
    scenario["training"]["strategy"] = strategy;
    scenario["model"]["attention"] = "fused";
    const std::vector<LayoutCandidate> candidates = candidates_of(scenario);
    CHECK(values_of(candidates, "training.strategy") == std::set<std::string>{"null"});
    bool has_copies = false;
    for (const LayoutCandidate& candidate : candidates) {
      CHECK_NOTHROW(scenario_from(scenario, {.overrides = candidate.overrides()}));
      has_copies = has_copies || (candidate.data > 1 && candidate.tensor > 1);
    }
    CHECK(has_copies);
  }
}

// Two stages of 12 blocks: parts of 3, 2 and 1; four: 3 parts of one; five are as uneven with 2 as they come.
TEST_CASE("interleaving is tried with every number of parts that are alike, and with the fewest") {
  ordered_json scenario = scenario_on(5, 12);
  scenario["training"]["global_batch"] = 320;
  std::map<std::int64_t, std::set<std::int64_t>> parts;
  for (const LayoutCandidate& candidate : candidates_of(scenario))
    if (candidate.schedule == "interleaved")
      parts[candidate.pipeline].insert(candidate.virtual_stages);
  CHECK(parts == std::map<std::int64_t, std::set<std::int64_t>>{{2, {2, 3, 6}}, {4, {2, 3}}, {5, {2}}});
}

TEST_CASE("candidates come once each") {
  const std::vector<LayoutCandidate> candidates = candidates_of(scenario_on(2, 8));
  std::set<Overrides> seen;
  for (const LayoutCandidate& candidate : candidates) CHECK(seen.insert(candidate.overrides()).second);
}

TEST_CASE("a twin differs by its order of dimensions, a lighter one by its recomputation") {
  const std::vector<LayoutCandidate> candidates = candidates_of(scenario_on(2, 4));
  const auto differences = [&](const LayoutCandidate& one, const LayoutCandidate& other) {
    std::set<std::string> paths;
    for (std::size_t i = 0; i < one.set.size(); ++i)
      if (one.set[i] != other.set.at(i))
        paths.insert(one.set[i].first);
    return paths;
  };
  std::size_t twins = 0;
  for (const LayoutCandidate& candidate : candidates) {
    if (candidate.twin)
      CHECK(differences(candidate, candidates.at(*candidate.twin)) ==
            std::set<std::string>{"training.placement"});
    if (candidate.lighter)
      CHECK(differences(candidate, candidates.at(*candidate.lighter)) ==
            std::set<std::string>{"training.recompute"});
    twins += candidate.twin ? 1 : 0;
  }
  CHECK(twins > 0);
}

TEST_CASE("orders of dimensions are told where copies and stages compete for a node") {
  CHECK(values_of(candidates_of(scenario_on(1, 8)), "training.placement").empty());
  CHECK(values_of(candidates_of(scenario_on(2, 8)), "training.placement") ==
        std::set<std::string>{"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"});
}

TEST_CASE("a model of images is copied and cut into stages, and its layers stay whole") {
  ordered_json scenario;
  scenario["cluster"] = {{"machine", "dgx_a100_80gb"}, {"nodes", 1}};
  scenario["model"] = {{"name", "resnet50"}, {"batch_per_gpu", 32}, {"precision", "amp_fp16"}};
  scenario["training"] = {{"strategy", "ddp"}};
  const std::vector<LayoutCandidate> candidates = candidates_of(scenario);
  CHECK(values_of(candidates, "training.tensor_parallel") == std::set<std::string>{"1"});
  CHECK(values_of(candidates, "training.pipeline_parallel").size() > 1);
  // Whole models keep batches of their own, beside 1 to 8 the scenario's and half of it; cut ones have none.
  CHECK(values_of(candidates, "model.batch_per_gpu") ==
        std::set<std::string>{"1", "16", "2", "32", "4", "8", "null"});
  CHECK(values_of(candidates, "training.micro_batch") ==
        std::set<std::string>{"1", "16", "2", "32", "4", "8"});
  CHECK(values_of(candidates, "training.global_batch") == std::set<std::string>{"256"});
}

TEST_CASE("experts are dealt by divisors of both, all of a tensor group sharing each or none") {
  LoadedScenario base = scenario_from(scenario_on(1, 4));
  base.model.model.transformer->mixture = {.experts = 6, .experts_per_token = 2, .ffn = 1024};
  CHECK(values_of(layout_candidates(base, {.nodes = 1, .gpus_per_node = 8}), "training.expert_parallel") ==
        std::set<std::string>{"1", "2"});
  const std::vector<LayoutCandidate> of_eight = layout_candidates(base, {.nodes = 1, .gpus_per_node = 8});
  CHECK(values_of(of_eight, "training.expert_tensor_parallel") == std::set<std::string>{"1"});
  for (const LayoutCandidate& candidate : of_eight)
    if (candidate.expert_tensor == 0)
      CHECK(candidate.context * candidate.data % candidate.expert == 0);
}

}  // namespace lockstep::layout_candidates_test
