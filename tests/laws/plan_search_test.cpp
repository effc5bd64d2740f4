// What a plan cuts is never what it was asked for, and what it tells is what a prediction tells.

#include "sim/study/capacity/plan_search.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/report/prediction.h"
#include "sim/study/capacity/plan_text.h"
#include "tests/scenario/lab.h"

namespace lockstep::plan_search_law {

using nlohmann::ordered_json;

ordered_json small_request() {
  ordered_json request;
  request["name"] = "four blocks";
  request["model"] = {{"family", "transformer"},
                      {"layers", 4},
                      {"hidden", 1024},
                      {"heads", 8},
                      {"ffn", 2816},
                      {"vocabulary", 32000},
                      {"precision", "bf16"},
                      {"sequence_length", 512},
                      {"batch_per_gpu", 8}};
  request["compute"] = {{"kernels", "fused"}};
  request["goal"] = {{"tokens", 2e9}};
  const ordered_json strategies = {"ddp", "zero1", "fsdp"};
  request["candidates"] = ordered_json::array({{{"machine", "dgx_a100_80gb"},
                                                {"nodes", "1:32:x2"},
                                                {"usd_per_gpu_hour", 1.0},
                                                {"price_date", "2026-05"},
                                                {"strategies", strategies}},
                                               {{"machine", "dgx_h100"},
                                                {"nodes", "1:32:x2"},
                                                {"usd_per_gpu_hour", 2.9},
                                                {"price_date", "2026-05"},
                                                {"strategies", strategies}},
                                               {{"machine", "v100_8gpu_1xedr"},
                                                {"nodes", {1, 2}},
                                                {"usd_per_gpu_hour", 0.5},
                                                {"price_date", "2026-05"},
                                                {"strategies", strategies}}});
  return request;
}

ordered_json with_faults() {
  ordered_json request = small_request();
  request["faults"] = {
      {"mtbf_per_node", "40 days"}, {"restart", "10 min"}, {"checkpoint_bandwidth", "2 GB/s"}};
  request["goal"]["minimize"] = "time";
  return request;
}

ordered_json with_limits() {
  ordered_json request = small_request();
  request["goal"]["deadline"] = "12 min";
  request["goal"]["budget_usd"] = 20;
  return request;
}

PlanQuestion question_about(const ordered_json& request) {
  const testing::Folder folder;
  return {.request = read_plan_request(folder.write("request.json", request.dump())),
          .data_directory = LOCKSTEP_SOURCE_DIR,
          .top = 4,
          .jobs = 2};
}

TEST_CASE("a plan tells what the simulation of every option tells") {
  std::size_t cut = 0;
  for (const ordered_json& request : {small_request(), with_faults(), with_limits()}) {
    CAPTURE(request.dump());
    PlanQuestion question = question_about(request);
    const PlanAnswer pruned = search_plans(question);
    question.cuts = false;
    const PlanAnswer all = search_plans(question);
    CHECK(all.cut_by_bound == 0);
    REQUIRE(pruned.plans.size() == all.plans.size());
    REQUIRE(pruned.plans.size() >= 4);
    for (std::size_t rank = 0; rank < all.plans.size(); ++rank)
      CHECK(to_json(pruned)["plans"][rank].dump() == to_json(all)["plans"][rank].dump());
    cut += pruned.cut_by_bound;
  }
  CHECK(cut > 0);
}

TEST_CASE("what a plan tells of an iteration is what a prediction of its scenario tells") {
  const PlanAnswer answer = search_plans(question_about(small_request()));
  for (const CapacityPlan& plan : answer.plans) {
    CAPTURE(plan.layout);
    const Prediction prediction = predict(load({.text = plan.scenario.dump(),
                                                .overrides = plan.layout_changes,
                                                .data_directory = LOCKSTEP_SOURCE_DIR}));
    CHECK(prediction.report.iteration == plan.brief.iteration);
    CHECK(prediction.report.times.low == plan.low);
    CHECK(prediction.report.memory.peak.total() == plan.brief.memory);
  }
}

TEST_CASE("the answer is the same text on one thread and on three") {
  PlanQuestion question = question_about(with_limits());
  question.jobs = 1;
  const PlanAnswer alone = search_plans(question);
  question.jobs = 3;
  const PlanAnswer together = search_plans(question);
  CHECK(to_json(alone).dump() == to_json(together).dump());
  CHECK(to_text(alone) == to_text(together));
}

TEST_CASE("what has no price is on no front, and keeps nothing off it") {
  ordered_json request = small_request();
  request["candidates"][1].erase("usd_per_gpu_hour");
  request["candidates"][1].erase("price_date");
  request["candidates"][1]["machine"] = "hgx_b300";
  const PlanAnswer answer = search_plans(question_about(request));
  const auto cheapest =
      std::min_element(answer.plans.begin(), answer.plans.end(), [](const auto& one, const auto& other) {
        return one.run.usd.value_or(1e12) < other.run.usd.value_or(1e12);
      });
  REQUIRE(cheapest != answer.plans.end());
  CHECK(cheapest->is_on_front);
  CHECK(std::any_of(answer.plans.begin(), answer.plans.end(),
                    [](const CapacityPlan& plan) { return !plan.run.usd; }));
  for (const CapacityPlan& plan : answer.plans)
    if (!plan.run.usd)
      CHECK_FALSE(plan.is_on_front);
}

TEST_CASE("plans are in the order of the objective, and those on the front are beaten by none") {
  const PlanAnswer answer = search_plans(question_about(small_request()));
  CHECK(answer.objective == PlanObjective::cost);
  for (std::size_t rank = 1; rank < answer.plans.size(); ++rank)
    CHECK(*answer.plans[rank - 1].run.usd <= *answer.plans[rank].run.usd);
  for (const CapacityPlan& plan : answer.plans)
    for (const CapacityPlan& other : answer.plans)
      if (plan.is_on_front)
        CHECK_FALSE((other.run.seconds < plan.run.seconds && *other.run.usd < *plan.run.usd));
  CHECK(answer.plans.front().is_on_front);
}

TEST_CASE("where nothing reaches the goal, the nearest is told and what it lacks") {
  ordered_json request = small_request();
  request["goal"]["deadline"] = "4 s";
  const PlanAnswer answer = search_plans(question_about(request));
  CHECK(answer.plans.empty());
  CHECK(answer.rejected.size() == answer.options);
  REQUIRE(answer.nearest.has_value());
  CHECK(answer.nearest->plan.run.seconds > 4);
  CHECK(answer.nearest->plan.machine == "dgx_h100");  // the fastest is the nearest in time
  CHECK(answer.nearest->plan.option.nodes == 32);
  CHECK(answer.nearest->lacking.find("the deadline is 4") != std::string::npos);
}

}  // namespace lockstep::plan_search_law
