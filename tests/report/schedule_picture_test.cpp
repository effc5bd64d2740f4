// What is drawn of a pipeline: every pass once, in the schedule's order, and nothing twice at one time.

#include "sim/report/schedule_picture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "sim/training/schedules/pipeline_schedule.h"
#include "tests/support/scenarios.h"

namespace lockstep::schedule_picture_test {

using Json = nlohmann::ordered_json;

LoadedScenario four_stages(const Overrides& overrides) {
  return load({.path = std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/pipeline_four_stages.json",
               .overrides = overrides});
}

std::vector<Overrides> schedules() {
  return {{},
          {{"training.pipeline_schedule", "1f1b"}, {"training.recompute", "full"}},
          {{"training.pipeline_schedule", "zb_h1"}, {"training.gradient_accumulation", "8"}},
          {{"training.pipeline_schedule", "zb_v"}, {"model.layers", "16"}},
          {{"training.pipeline_schedule", "zb_v"},
           {"model.layers", "16"},
           {"training.gradient_accumulation", "2"}},
          {{"training.pipeline_schedule", "interleaved"},
           {"model.layers", "16"},
           {"training.virtual_stages", "4"}},
          {{"cluster.gpus_per_node", "8"},
           {"training.strategy", "ddp"},
           {"training.pipeline_parallel", "4"},
           {"training.tensor_parallel", "2"}}};
}

TEST_CASE("Every pass of the schedule is drawn once and in its order") {
  for (const Overrides& overrides : schedules()) {
    const LoadedScenario scenario = four_stages(overrides);
    const Layout& layout = scenario.training.layout;
    const Json picture = schedule_picture(scenario, simulate(scenario));
    REQUIRE(picture.at("stages").size() == 4);
    for (std::int64_t stage = 0; stage < 4; ++stage) {
      INFO(layout.schedule, ", stage ", stage);
      const std::vector<Pass> passes = pipeline_schedule_named(layout.schedule)
                                           .passes({.stages = 4,
                                                    .chunks = layout.chunks,
                                                    .micro_batches = scenario.training.gradient_accumulation},
                                                   stage);
      const Json& drawn = picture.at("stages").at(static_cast<std::size_t>(stage)).at("passes");
      REQUIRE(drawn.size() == passes.size());
      for (std::size_t i = 0; i < passes.size(); ++i) {
        CHECK(drawn[i].at("micro_batch") == passes[i].micro_batch);
        CHECK(drawn[i].at("chunk") == passes[i].chunk);
        CHECK((drawn[i].at("kind") == "forward") == (passes[i].kind == PassKind::forward));
      }
    }
  }
}

TEST_CASE("Passes of a stage follow one another, and messages leave their sender before they arrive") {
  for (const Overrides& overrides : schedules()) {
    const LoadedScenario scenario = four_stages(overrides);
    const Json picture = schedule_picture(scenario, simulate(scenario));
    for (const Json& stage : picture.at("stages")) {
      double last = 0;
      for (const Json& pass : stage.at("passes")) {
        CHECK(pass.at("start_s").get<double>() >= last - 1e-12);
        CHECK(pass.at("end_s") > pass.at("start_s"));
        last = pass.at("end_s");
      }
    }
    for (const Json& send : picture.at("sends")) {
      CHECK(send.at("from") != send.at("to"));
      CHECK(send.at("start_s") < send.at("end_s"));
    }
  }
}

// The picture of seed documents on pipelines: the last of four stages begins when three turns are over.
TEST_CASE("Four micro-batches enter four stages one turn after another") {
  const LoadedScenario scenario = four_stages({});
  const Json picture = schedule_picture(scenario, simulate(scenario));
  const auto start = [&](std::size_t stage, std::size_t pass) {
    return picture.at("stages").at(stage).at("passes").at(pass).at("start_s").get<double>();
  };
  for (std::size_t stage = 1; stage < 4; ++stage)
    for (std::size_t micro = 1; micro < 4; ++micro)
      CHECK(start(stage, micro - 1) == doctest::Approx(start(stage - 1, micro)).epsilon(0.01));
}

}  // namespace lockstep::schedule_picture_test
