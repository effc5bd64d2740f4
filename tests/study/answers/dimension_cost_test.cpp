// What each dimension of a layout asks of the network: how often and how much as published, what would hide it.

#include "sim/study/answers/dimension_cost.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/support/scenarios.h"

namespace lockstep::dimension_cost_test {

using Json = nlohmann::ordered_json;

constexpr std::int64_t layers = 8;
constexpr std::int64_t hidden = 1024;
constexpr std::int64_t tokens = 512;
constexpr std::int64_t micro_batches = 4;

Json transformer(std::int64_t nodes, const Json& training) {
  Json all{{"optimizer", "adam"}, {"micro_batch", 1}, {"gradient_accumulation", micro_batches}};
  all.update(training);
  return {{"name", "cost"},
          {"cluster", {{"machine", "dgx_a100_80gb"}, {"nodes", nodes}}},
          {"model",
           {{"family", "transformer"},
            {"style", "gpt2"},
            {"layers", layers},
            {"hidden", hidden},
            {"heads", 16},
            {"vocabulary", 8192},
            {"sequence_length", tokens},
            {"attention", "fused"},
            {"precision", "bf16"}}},
          {"training", all}};
}

std::vector<DimensionCost> costs_of(const Json& given) {
  const LoadedScenario scenario = scenario_from(given);
  return find_dimension_costs(scenario, simulate(scenario));
}

DimensionCost cost_of(const Json& given, std::string_view dimension, Payload payload) {
  const std::vector<DimensionCost> costs = costs_of(given);
  const auto found = std::find_if(costs.begin(), costs.end(), [&](const DimensionCost& cost) {
    return cost.dimension == dimension && cost.payload == payload;
  });
  REQUIRE(found != costs.end());
  return *found;
}

TEST_CASE("A dimension is told with the links that its ranks have between them") {
  const Json given = transformer(2, {{"strategy", "ddp"}, {"tensor_parallel", 8}});
  CHECK(cost_of(given, "tensor", Payload::activations).links == "in a node: switch, nvlink3");
  CHECK(cost_of(given, "data", Payload::gradients).links == "network: 8 NICs of a node, hdr200");
  CHECK(cost_of(given, "tensor", Payload::activations).ranks == 8);
  CHECK(cost_of(given, "data", Payload::gradients).ranks == 2);
}

// Shoeybi et al.: of each block two all-reduces forward and two backward, of every micro-batch; the ends of the model
// have some of their own.
TEST_CASE("Tensor parallelism exchanges a block's activations four times a micro-batch") {
  const DimensionCost cost =
      cost_of(transformer(1, {{"strategy", "ddp"}, {"tensor_parallel", 8}}), "tensor", Payload::activations);
  CHECK(cost.messages >= 4 * layers * micro_batches);
  CHECK(cost.messages <= (4 * layers + 8) * micro_batches);
  CHECK(cost.largest == Bytes{2 * hidden * tokens});
}

// The first of two stages sends each micro-batch's hidden states once, and its embedding's gradient.
TEST_CASE("A stage hands each micro-batch on once") {
  const DimensionCost cost = cost_of(transformer(1, {{"strategy", "ddp"}, {"pipeline_parallel", 2}}),
                                     "pipeline", Payload::activations);
  CHECK(cost.messages == micro_batches + 1);
  CHECK(cost.smallest == Bytes{2 * hidden * tokens});
}

TEST_CASE("What hides a dimension is its bytes over what is computed meanwhile") {
  for (const DimensionCost& cost : costs_of(transformer(2, {{"strategy", "ddp"}, {"tensor_parallel", 8}}))) {
    REQUIRE(cost.needs.has_value());
    CHECK(
        static_cast<double>(cost.needs->count()) ==
        doctest::Approx(static_cast<double>(cost.sent.count()) / cost.computing.in_seconds()).epsilon(1e-6));
    CHECK(cost.stands.has_value() == (*cost.needs < cost.link_bandwidth));
  }
}

// Of as much computing: four exchanges a block against one message a stage, and the embedding's gradient once.
TEST_CASE("Tensor parallelism needs far more bandwidth than a pipeline") {
  const Json many{{"strategy", "ddp"}, {"gradient_accumulation", 64}};
  Json tensor = transformer(1, many);
  Json pipeline = transformer(1, many);
  tensor["training"]["tensor_parallel"] = 2;
  pipeline["training"]["pipeline_parallel"] = 2;
  CHECK(cost_of(tensor, "tensor", Payload::activations).needs->count() >
        4 * cost_of(pipeline, "pipeline", Payload::activations).needs->count());
}

}  // namespace lockstep::dimension_cost_test
