// Gradients that stand in fp32 beside weights in half precision: as wide as they stand they are sent.

#include <doctest/doctest.h>

#include "sim/report/prediction.h"
#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep::accumulated_gradients_test {

using Json = nlohmann::ordered_json;

constexpr std::int64_t gpt2_parameters = 124439808;
constexpr std::int64_t padded_parameters =
    gpt2_parameters + (50304 - 50257) * 768;  // to a multiple of 128 words

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
  CHECK(reduced(nullptr) == Bytes{4 * padded_parameters});
  CHECK(reduced(true) == Bytes{4 * padded_parameters});
  CHECK(reduced(false) == Bytes{2 * padded_parameters});
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

Json partitioned(const char* precision, const Json& settings) {
  Json json = Json::parse(R"({"cluster": {"machine": "dgx_a100_80gb"},
                              "model": {"name": "gpt2", "attention": "fused", "batch_per_gpu": 4},
                              "training": {"framework": "megatron", "strategy": "zero1"}})");
  json["model"]["precision"] = precision;
  json["training"].update(settings);
  return json;
}

TEST_CASE("its distributed optimizer reduces what the same option says, and the other way about") {
  const auto of = [](const char* precision, const Json& settings) {
    return scenario_from(partitioned(precision, settings)).training;
  };
  const auto type = [&](const char* precision, const Json& settings) {
    return of(precision, settings).zero.communication_data_type;
  };
  CHECK(type("bf16", Json::object()) == Precision::fp32);
  CHECK(type("bf16", {{"accumulate_allreduce_grads_in_fp32", false}}) == Precision::bf16);
  CHECK(type("fp16", Json::object()) == Precision::fp16);
  CHECK(type("fp16", {{"accumulate_allreduce_grads_in_fp32", true}}) == Precision::fp32);
  CHECK_FALSE(of("bf16", {{"communication_data_type", "bf16"}}).accumulate_allreduce_grads_in_fp32);
  CHECK(of("fp16", {{"communication_data_type", "fp32"}}).accumulate_allreduce_grads_in_fp32);
}

TEST_CASE("what it reduces is what gradients stand in: no third type, and no two answers") {
  const auto problem = [](const char* precision, const Json& settings) {
    return testing::problems_of({.text = partitioned(precision, settings).dump(), .overrides = {}});
  };
  CHECK(problem("bf16", {{"communication_data_type", "fp16"}}).find("found fp16 with weights in bf16") !=
        std::string::npos);
  CHECK(problem("fp32", {{"communication_data_type", "bf16"}}).find("expected fp32") != std::string::npos);
  CHECK(problem("bf16", {{"communication_data_type", "bf16"}, {"accumulate_allreduce_grads_in_fp32", true}})
            .find("expected one of the two") != std::string::npos);
}

// DeepSpeed, runtime/bf16_optimizer.py: bf16 gradients are cleared before the next backward, not as they are added.
TEST_CASE("DeepSpeed holds bf16 gradients and their sum in fp32; PyTorch has no such sum") {
  const auto gradients = [](const char* framework, const char* precision) {
    Json json = partitioned(
        precision,
        {{"framework", framework}, {"strategy", "ddp"}, {"accumulate_allreduce_grads_in_fp32", true}});
    return predict(scenario_from(json), {.with_band = false}).report.memory.standing.gradients;
  };
  CHECK(gradients("megatron", "bf16") == Bytes{4 * padded_parameters});
  CHECK(gradients("deepspeed", "bf16").count() - gradients("pytorch_ddp", "bf16").count() ==
        4 * gpt2_parameters);
  CHECK(gradients("pytorch_ddp", "bf16").count() < 3 * gpt2_parameters);
}

}  // namespace lockstep::accumulated_gradients_test
