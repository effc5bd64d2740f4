#include "sim/run/run_size.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/study/answers/strategy_comparison.h"
#include "sim/study/bench/collective_table.h"
#include "sim/study/validation/validation.h"
#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep::scenario_run_size_test {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string shipped(const std::string& name) {
  return std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/" + name + ".json";
}

template <class Act>
std::string refusal_of(Act act) {
  try {
    act();
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

std::string refusal_of(const LoadRequest& request) {
  return refusal_of([&] { predict(load(request)); });
}

std::string refusal_of_table(const CollectiveSetting& setting, CollectiveOp op) {
  return refusal_of([&] {
    const Scenario scenario = load_collective_setting(setting, shipped_profiles());
    CollectiveBench(scenario).predict(op, SizeRange{});
  });
}

TEST_CASE(
    "Every step of every rank of a large cluster is refused, with its file, how much and the ways out") {
  const std::string found = refusal_of({.path = shipped("gpt2_ddp_1024_step"),
                                        .overrides = {{"communication.algorithm", "tree"}},
                                        .fold = false});
  CHECK(contains(found, "gpt2_ddp_1024_step.json: /simulation: "));
  CHECK(contains(found, "1024 ranks simulated one by one"));
  CHECK(contains(found, "1 GB and 5 s"));
  CHECK(contains(found, "fidelity \"flow\""));
  CHECK(contains(found, "no --no-fold"));
  CHECK(contains(found, "--yes"));
}

TEST_CASE("What used to run out of memory or time is refused") {
  const auto is_refused = [](const LoadRequest& request) {
    return contains(refusal_of(request), "/simulation: ");
  };
  CHECK(is_refused({.path = shipped("byteps_vgg16"), .overrides = {{"training.servers", "10000"}}}));
  CHECK(is_refused({.path = shipped("resnet50_ddp_2x8_a100"), .overrides = {{"cluster.nodes", "65536"}}}));
  // 4,096 ranks send sixteen times the messages of the 1,024 that fit.
  CHECK(is_refused(
      {.path = shipped("gpt2_ddp_1024_step"), .overrides = {{"cluster.nodes", "512"}}, .fold = false}));
  // The library takes trees for its buckets on 128 nodes, so that nobody stands for others.
  CHECK(is_refused(
      {.path = shipped("gpt2_ddp_1024_step"), .overrides = {{"communication.algorithm", "auto"}}}));
}

TEST_CASE("Two hundred iterations of every step, of which no two are alike, are too many") {
  const std::string found = refusal_of({.path = shipped("ddp_jitter_64_gpus"), .fidelity = Fidelity::step});
  CHECK(contains(found, "fewer simulation.iterations"));
  CHECK(contains(found, "64 ranks simulated one by one"));
}

TEST_CASE("Collectives on too many ranks are refused") {
  const auto refusal = [](std::int64_t nodes, CollectiveOp op, std::optional<Fidelity> fidelity = {}) {
    return refusal_of_table({.machine = "dgx_a100_40gb", .nodes = nodes, .fidelity = fidelity}, op);
  };
  CHECK(contains(refusal(4'000, CollectiveOp::all_to_all), "messages between pairs of ranks"));
  CHECK(contains(refusal(100'000, CollectiveOp::all_reduce), "100000 nodes"));
  CHECK(contains(refusal(512, CollectiveOp::all_reduce, Fidelity::step), "4096 ranks simulated one by one"));
  CHECK(refusal(100, CollectiveOp::all_to_all) == "");
}

TEST_CASE("A comparison of a hundred thousand rounds is refused, and one of three hundred is not") {
  Scenario scenario =
      load({.path = shipped("sync_against_async"), .overrides = {{"compare.rounds", "100000"}}});
  CHECK(contains(refusal_of([&] { compare_strategies(scenario); }), "fewer compare.rounds"));
  scenario.comparison->rounds = 300;
  CHECK(refusal_of([&] { compare_strategies(scenario); }) == "");
}

TEST_CASE("A validated case of a million nodes is refused with its file") {
  const testing::Folder folder;
  nlohmann::ordered_json scenario = nlohmann::ordered_json::parse(testing::resnet_text);
  scenario["cluster"]["nodes"] = 1'000'000;
  scenario["cluster"]["gpus_per_node"] = 1;
  const nlohmann::ordered_json entry{
      {"name", "case"}, {"group", "g"}, {"measured", {{"iteration_time_s", 1.0}}}};
  const nlohmann::ordered_json cases{{"schema", "lockstep.measurements/1"},
                                     {"source", "test"},
                                     {"split", "fit"},
                                     {"scenario", scenario},
                                     {"cases", nlohmann::ordered_json::array({entry})}};
  const std::string file = folder.write("m.json", cases.dump());
  const std::string found =
      refusal_of([&] { validate({.files = {file}, .data_directory = LOCKSTEP_SOURCE_DIR}); });
  CHECK(contains(found, file));
  CHECK(contains(found, "of 1 million nodes"));
}

TEST_CASE("Who says --yes is refused nothing, and a plan's writer gets any room") {
  Scenario scenario = load({.path = shipped("resnet50_ddp_2x8_a100"), .accepts_any_size = true});
  const RunSize huge{.links = 1e12, .events = 1e15};
  CHECK_NOTHROW(refuse_if_large(scenario, huge));
  CHECK(room_for_plan(scenario) == PlanWriter::any_room);
  scenario.simulation.accepts_any_size = false;
  CHECK_THROWS_AS(refuse_if_large(scenario, huge), ConfigError);
  CHECK(room_for_plan(scenario) < PlanWriter::any_room);
}

TEST_CASE("Sizes are said in two digits") {
  CHECK(rough_seconds(0.0123) == "0.012 s");
  CHECK(rough_seconds(12.34) == "12 s");
  CHECK(rough_seconds(100) == "100 s");
  CHECK(rough_seconds(3'600) == "60 min");
  CHECK(rough_seconds(36'000) == "10 h");
  CHECK(rough_bytes(2.04e9) == "2 GB");
  CHECK(rough_bytes(512e6) == "512 MB");
  CHECK(rough_bytes(330e9) == "330 GB");
}

}  // namespace lockstep::scenario_run_size_test
