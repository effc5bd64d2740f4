// Gradients that stand in fp32 beside weights in half precision: as wide as they stand they are sent.

#include <doctest/doctest.h>

#include "sim/report/prediction.h"
#include "tests/support/scenarios.h"

namespace lockstep::accumulated_gradients_test {

using Json = nlohmann::ordered_json;

constexpr std::int64_t gpt2_parameters = 124439808;

Bytes reduced(const Json& in_fp32) {
  Json json = Json::parse(R"({"cluster": {"machine": "dgx_a100_80gb", "nodes": 2},
                              "model": {"name": "gpt2", "attention": "fused", "batch_per_gpu": 4, "precision": "bf16"},
                              "training": {"framework": "megatron", "strategy": "ddp", "optimizer": "adamw"}})");
  json["training"]["accumulate_allreduce_grads_in_fp32"] = in_fp32;
  Bytes bytes;
  for (const BucketReport& bucket :
       predict(scenario_from(json), {.with_band = false}).report.communication.buckets)
    bytes += bucket.bytes;
  return bytes;
}

// Megatron-LM, core/distributed, param_and_grad_buffer.py: grad_dtype is fp32 if grad_reduce_in_fp32, and
// arguments.py sets that with bf16.
TEST_CASE("Megatron-LM all-reduces bf16 models in fp32 unless it is told otherwise") {
  CHECK(reduced(nullptr) == Bytes{4 * gpt2_parameters});
  CHECK(reduced(true) == Bytes{4 * gpt2_parameters});
  CHECK(reduced(false) == Bytes{2 * gpt2_parameters});
}

TEST_CASE("they stand once, though experts are dealt over ranks that hold the rest of the model each") {
  for (const std::int64_t expert_parallel : {1, 2, 8}) {
    Json json = Json::parse(R"({"cluster": {"machine": "dgx_h100"},
                                "model": {"name": "mixtral_8x7b", "layers": 2, "sequence_length": 512, "precision": "bf16"},
                                "training": {"framework": "megatron", "strategy": "ddp", "optimizer": "adamw",
                                             "micro_batch": 1}})");
    json["training"]["expert_parallel"] = expert_parallel;
    CAPTURE(expert_parallel);
    const MemoryUse memory = predict(scenario_from(json), {.with_band = false}).report.memory.standing;
    CHECK(memory.gradients == memory.parameters * 2);
  }
}

TEST_CASE("its distributed optimizer reduces what the same option says") {
  const auto type = [](const Json& in_fp32) {
    Json json = Json::parse(R"({"cluster": {"machine": "dgx_a100_80gb"},
                                "model": {"name": "gpt2", "attention": "fused", "batch_per_gpu": 4, "precision": "bf16"},
                                "training": {"framework": "megatron", "strategy": "zero1"}})");
    json["training"]["accumulate_allreduce_grads_in_fp32"] = in_fp32;
    return scenario_from(json).training.zero.communication_data_type;
  };
  CHECK(type(nullptr) == Precision::fp32);
  CHECK(type(false) == Precision::bf16);
}

}  // namespace lockstep::accumulated_gradients_test
