// What a search for layouts cuts is never what it was asked for.

#include "sim/study/answers/layout_search.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/report/prediction.h"
#include "sim/study/answers/layout_bound.h"
#include "sim/study/answers/layout_text.h"

namespace lockstep::layout_search_law {

using nlohmann::ordered_json;

// Four blocks on eight GPUs: small enough to simulate every layout of it.
ordered_json small_transformer(const std::string& strategy) {
  ordered_json scenario;
  scenario["name"] = "four blocks";
  scenario["cluster"] = {{"machine", "dgx_a100_80gb"}, {"nodes", 2}, {"gpus_per_node", 4}};
  scenario["model"] = {{"family", "transformer"}, {"layers", 4}, {"hidden", 1024},      {"heads", 8},
                       {"kv_heads", 4},           {"ffn", 2816}, {"vocabulary", 32000}, {"precision", "bf16"},
                       {"sequence_length", 512}};
  scenario["training"] = {{"strategy", strategy}, {"micro_batch", 1}, {"global_batch", 8}};
  scenario["compute"] = {{"kernels", "fused"}};
  return scenario;
}

// Two nodes far apart: what communicates between them loses by what bounds know nothing of.
ordered_json on_slow_links() {
  ordered_json scenario = small_transformer("zero1");
  scenario["cluster"]["slow_links"] = ordered_json::array({{{"node", 1}, {"slowdown", 20}}});
  return scenario;
}

// Its memory holds some layouts and not others.
ordered_json in_little_memory() {
  ordered_json scenario = small_transformer("ddp");
  scenario["cluster"]["machine"] = {{"based_on", "dgx_a100_80gb"},
                                    {"gpu", {{"based_on", "a100_sxm_80gb"}, {"memory", "2 GiB"}}}};
  return scenario;
}

ordered_json with_stragglers() {
  ordered_json scenario = small_transformer("zero3");
  scenario["cluster"]["stragglers"] = ordered_json::array({{{"rank", 3}, {"slowdown", 1.4}}});
  return scenario;
}

LayoutQuestion question_about(const ordered_json& scenario) {
  return {.base = {.text = scenario.dump(), .data_directory = LOCKSTEP_SOURCE_DIR}};
}

LayoutAnswer exhaustive(LayoutQuestion question) {
  question.cuts = false;
  question.top = 1'000'000;
  return search_layouts(question);
}

Overrides changes_of(const FoundLayout& layout) {
  return layout.candidate.overrides();
}

void check_bounds(const LayoutQuestion& question, const LayoutAnswer& all) {
  const ScenarioVariants variants(question.base);
  for (const FoundLayout& layout : all.layouts) {
    CAPTURE(set_arguments(changes_of(layout)));
    const LayoutBound bound = bound_layout(variants.load({.changes = changes_of(layout)}));
    CHECK(bound.iteration > Duration::zero());
    CHECK(bound.iteration <= layout.brief.iteration);
    CHECK(bound.memory <= layout.brief.memory);
  }
}

TEST_CASE("a search tells what the simulation of every layout tells, no layout being better than its bound") {
  std::size_t cut = 0;
  for (const ordered_json& scenario : {on_slow_links(), in_little_memory(), with_stragglers()}) {
    CAPTURE(scenario.dump());
    LayoutQuestion question = question_about(scenario);
    const LayoutAnswer all = exhaustive(question);
    question.top = 5;
    const LayoutAnswer best = search_layouts(question);
    CHECK(all.rejected.cut_by_bound == 0);
    CHECK(all.rejected.not_loadable == 0);
    REQUIRE(all.layouts.size() == all.simulated);
    REQUIRE(best.layouts.size() == 5);
    for (std::size_t rank = 0; rank < best.layouts.size(); ++rank) {
      CHECK(best.layouts[rank].brief.iteration == all.layouts[rank].brief.iteration);
      CHECK(changes_of(best.layouts[rank]) == changes_of(all.layouts[rank]));
    }
    cut += best.rejected.cut_by_bound;
    check_bounds(question, all);
  }
  CHECK(cut > 0);
}

TEST_CASE("what a search tells of a layout is what a prediction with its changes tells") {
  LayoutQuestion question = question_about(small_transformer("zero1"));
  question.top = 8;
  const ScenarioVariants variants(question.base);
  for (const FoundLayout& layout : search_layouts(question).layouts) {
    CAPTURE(set_arguments(changes_of(layout)));
    const Prediction prediction =
        variants.predict(variants.load({.changes = changes_of(layout)}), {.with_band = false});
    CHECK(layout.brief.iteration == prediction.report.iteration);
    CHECK(layout.brief.memory == prediction.report.memory.peak.total());
    CHECK(sum(layout.brief.breakdown) == prediction.report.iteration);
    CHECK(layout.brief.breakdown.pipeline_bubble == prediction.report.breakdown.pipeline_bubble);
    CHECK(layout.brief.throughput.samples_per_iteration == 8);
    CHECK(layout.brief.throughput.mfu == prediction.report.throughput.mfu);
  }
}

TEST_CASE("the answer is the same text on one thread and on three") {
  LayoutQuestion question = question_about(in_little_memory());
  question.jobs = 1;
  const LayoutAnswer alone = search_layouts(question);
  question.jobs = 3;
  const LayoutAnswer together = search_layouts(question);
  CHECK(to_json(alone).dump() == to_json(together).dump());
  CHECK(to_text(alone) == to_text(together));
}

TEST_CASE("what does not fit is left out, and the nearest of it told") {
  const LayoutAnswer answer = search_layouts(question_about(in_little_memory()));
  CHECK(answer.rejected.out_of_memory > 0);
  for (const FoundLayout& layout : answer.layouts) CHECK(layout.brief.memory <= answer.capacity);
  REQUIRE(answer.nearest.has_value());
  CHECK(answer.nearest->memory > answer.capacity);
}

// DDP pads a vocabulary where ranks share it and not where it is whole; Megatron-LM pads it always.
TEST_CASE("layouts that pad words beside some that do not are told to") {
  ordered_json scenario = small_transformer("ddp");
  CHECK(search_layouts(question_about(scenario)).warnings.empty());  // 32,000 are 250 x 128
  scenario["model"]["vocabulary"] = 32001;
  const std::vector<std::string> warnings = search_layouts(question_about(scenario)).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(warnings.front().starts_with("training.vocabulary_multiple is not stated: 32,001 words"));
  scenario["training"]["vocabulary_multiple"] = 128;
  CHECK(search_layouts(question_about(scenario)).warnings.empty());
  scenario["training"].erase("vocabulary_multiple");
  scenario["training"]["framework"] = "megatron";
  CHECK(search_layouts(question_about(scenario)).warnings.empty());
}

TEST_CASE("a layout that fits is told with no more recomputation than it needs") {
  const LayoutAnswer ample = exhaustive(question_about(small_transformer("ddp")));
  CHECK(ample.rejected.needless_recomputation > 0);
  for (const FoundLayout& layout : ample.layouts) CHECK(layout.candidate.recompute == "none");
}

// A stage's backward by input sends on what its tensor group owes each other, whoever does the weights when. Of
// five blocks the first stage has three: the rank that is told of is one of its, whichever schedule.
TEST_CASE("a schedule that splits backward exchanges as much in tensor groups as one that does not") {
  const ScenarioVariants variants({.text = small_transformer("ddp").dump()});
  const auto sent = [&](const std::string& schedule) {
    const Overrides changes{{"model.layers", "5"},
                            {"training.tensor_parallel", "2"},
                            {"training.pipeline_parallel", "2"},
                            {"training.pipeline_schedule", schedule}};
    const Prediction prediction = variants.predict(variants.load({.changes = changes}), {.with_band = false});
    for (const DimensionReport& dimension : prediction.report.communication.dimensions)
      if (dimension.name == "tensor")
        return dimension.sent;
    return Bytes{0};
  };
  CHECK(sent("1f1b") > Bytes{0});
  CHECK(sent("zb_h1") == sent("1f1b"));
}

}  // namespace lockstep::layout_search_law
