#include <doctest/doctest.h>

#include <algorithm>

#include "sim/run/describe_job.h"
#include "tests/support/scenarios.h"

namespace lockstep::recomputed_gathers_test {

using Json = nlohmann::ordered_json;

struct Gathers {
  std::vector<std::string> layers;  // of the second block that gather before their backward
  std::vector<Bytes> bytes;
};

Gathers gathers_of(const char* recompute, bool keeps_gathered_inputs) {
  Json given = Json::parse(R"({"cluster": {"machine": "dgx_a100_80gb", "nodes": 1, "gpus_per_node": 2},
      "model": {"name": "llama2_7b", "precision": "bf16"},
      "training": {"strategy": "ddp", "micro_batch": 1, "tensor_parallel": 2, "sequence_parallel": true}})");
  given["training"]["recompute"] = recompute;
  given["training"]["keeps_gathered_inputs"] = keeps_gathered_inputs;
  Gathers found;
  for (const LayerWork& layer : describe_job(scenario_from(given)).layers)
    for (const ExchangeWork& exchange : layer.exchanges.before_backward)
      if (layer.block == 1 && exchange.op == CollectiveOp::all_gather &&
          exchange.name.starts_with("gather again")) {
        found.layers.push_back(layer.name);
        found.bytes.push_back(exchange.bytes);
      }
  return found;
}

// Queries, keys and values read one gathered input, gate and up projection another; the gradient of the first product's
// weights reads it when the block runs again. A sample is 4,096 tokens of 4,096 values of two bytes.
TEST_CASE(
    "Where op saves a product's output, its gathered input is gathered again, once for all that read it") {
  const Gathers again = gathers_of("selective_op", true);
  CHECK(again.layers.size() == 2);
  CHECK(std::ranges::all_of(again.bytes, [](Bytes bytes) { return bytes == Bytes{4096 * 4096 * 2}; }));
  CHECK(gathers_of("none", true).layers.empty());
  CHECK(gathers_of("full", true).layers.empty());  // forward runs again, and gathers by itself
}

TEST_CASE("What Megatron gathers again in any case is gathered no third time") {
  CHECK(gathers_of("selective_op", false).layers == gathers_of("none", false).layers);
  CHECK(gathers_of("none", false).layers.size() == 2);
}

}  // namespace lockstep::recomputed_gathers_test
