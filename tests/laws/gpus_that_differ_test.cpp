// What it costs that no two GPUs are equally fast, in whole steps.

#include <doctest/doctest.h>

#include "sim/compute/rank_variation.h"
#include "tests/support/scenarios.h"

namespace lockstep::gpus_that_differ_test {

using Json = nlohmann::ordered_json;

// Communication beside nothing: what kernels take is theirs, and every strategy's kernels are the same.
Json gpt2_on(const std::string& strategy, std::int64_t nodes, std::int64_t gpus) {
  return {{"cluster", {{"machine", "dgx_a100_40gb"}, {"nodes", nodes}, {"gpus_per_node", gpus}}},
          {"model", {{"name", "gpt2"}, {"batch_per_gpu", 4}, {"precision", "amp_bf16"}}},
          {"training", {{"strategy", strategy}}},
          {"compute", {{"autocast", false}}},
          {"communication", {{"overlap", false}}}};
}

Duration forward_of(const Json& given, std::optional<Ratio> measured = {}) {
  Scenario scenario = scenario_from(given);
  scenario.cluster.calibration.rank_variation = measured;
  return summarise(scenario, simulate(scenario)).breakdown.forward;
}

TEST_CASE("More ranks never compute faster, and one waits for nobody") {
  for (const char* strategy : {"ddp", "fsdp", "zero3"}) {
    Duration before = forward_of(gpt2_on(strategy, 1, 1));
    CHECK(before == forward_of(gpt2_on(strategy, 1, 1), Ratio{}));
    for (const auto& [nodes, gpus] : {std::pair{1, 2}, {1, 8}, {2, 8}, {8, 8}}) {
      const Duration now = forward_of(gpt2_on(strategy, nodes, gpus));
      INFO(strategy, " on ", nodes, " x ", gpus);
      CHECK(now > before);
      before = now;
    }
  }
}

// A step's kernels multiply and move bytes, so the slowest of 16 takes between what chips differ in the one and
// in the other, and what passes on top.
TEST_CASE("A step differs from chip to chip by what bounds its kernels") {
  const Json given = gpt2_on("ddp", 2, 8);
  const double alike = forward_of(given, Ratio{}).in_seconds();
  const double slowest = forward_of(given).in_seconds() / alike - 1;
  const double maximum = expected_maximum(16).in_real();
  CHECK(slowest > 0.002 * maximum);
  CHECK(slowest < 0.015 * maximum + 0.005);
}

TEST_CASE("Who meets at every unit is never faster than who meets once a step") {
  for (const auto& [nodes, gpus] : {std::pair{1, 2}, {1, 8}, {4, 8}}) {
    const Duration once = forward_of(gpt2_on("ddp", nodes, gpus));
    for (const char* strategy : {"fsdp", "zero3"}) {
      INFO(strategy, " on ", nodes, " x ", gpus);
      CHECK(forward_of(gpt2_on(strategy, nodes, gpus)) > once);
    }
  }
}

// Groups of one node meet at every unit; all of them once a step.
TEST_CASE("Ranks that meet in groups wait less than if all met, and no less than if all met once a step") {
  Json grouped = gpt2_on("hsdp", 4, 8);
  grouped["training"]["shard_group"] = 8;
  CHECK(forward_of(grouped) <= forward_of(gpt2_on("fsdp", 4, 8)));
  CHECK(forward_of(grouped) >= forward_of(gpt2_on("ddp", 4, 8)));
}

// It is of whole steps, so it counts once a step however often ranks meet.
TEST_CASE("A spread that was measured takes the place of what is published") {
  const Duration ddp = forward_of(gpt2_on("ddp", 2, 8), Ratio::percent(1));
  const Duration fsdp = forward_of(gpt2_on("fsdp", 2, 8), Ratio::percent(1));
  CHECK(ddp == fsdp);
  const double maximum = expected_maximum(16).in_real();
  CHECK(ddp.in_seconds() / forward_of(gpt2_on("ddp", 2, 8), Ratio{}).in_seconds() ==
        doctest::Approx(1 + 0.01 * maximum).epsilon(1e-6));
}

}  // namespace lockstep::gpus_that_differ_test
