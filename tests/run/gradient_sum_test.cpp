// What adding gradients up takes: bytes of an element, counted by hand, and how often in a step.

#include "sim/run/gradient_sum.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/run/layer_kernels.h"
#include "tests/models/instance.h"
#include "tests/support/scenarios.h"

namespace lockstep::gradient_sum_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t micro_batches = 4;

LoadedScenario of(const char* precision, const Json& training, const Json& compute = Json::object()) {
  Json whole{{"gradient_accumulation", micro_batches}};
  whole.update(training);
  return scenario_from(Json{{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 2}}},
                            {"model",
                             {{"family", "transformer"},
                              {"style", "gpt2"},
                              {"layers", 2},
                              {"hidden", 64},
                              {"heads", 8},
                              {"vocabulary", 1024},
                              {"sequence_length", 32},
                              {"batch_per_gpu", 1},
                              {"precision", precision}}},
                            {"training", whole},
                            {"compute", compute}});
}

Json by(const char* framework, const char* strategy) {
  return {{"framework", framework}, {"strategy", strategy}};
}

}  // namespace

// A pass of autograd reads the sum and the gradient and writes the sum; DeepSpeed's casts the gradient before, which it
// reads and writes once more.
TEST_CASE("A sum is read and written once a micro-batch, as wide as it stands") {
  struct Expected {
    const char* precision;
    Json training;
    std::int64_t additions;
    std::int64_t kernels;
    std::int64_t bytes;
  };
  const std::vector<Expected> all{
      {"fp32", by("pytorch_ddp", "ddp"), micro_batches - 1, 1, 4 + 4 + 4},
      {"fp16", by("pytorch_ddp", "ddp"), micro_batches - 1, 1, 2 + 2 + 2},
      {"amp_bf16", by("pytorch_ddp", "ddp"), micro_batches - 1, 1, 4 + 4 + 4},
      {"fp16", by("megatron", "ddp"), micro_batches, 1, 2 + 2 + 2},
      {"bf16", by("megatron", "ddp"), micro_batches, 1, 4 + 2 + 4},
      {"bf16", by("megatron", "zero1"), micro_batches, 1, 4 + 2 + 4},
      {"bf16", by("deepspeed", "ddp"), micro_batches, 2, (2 + 4) + (4 + 4 + 4)},
      {"fp16", by("deepspeed", "ddp"), micro_batches - 1, 1, 2 + 2 + 2},
      {"bf16", by("deepspeed", "zero1"), micro_batches - 1, 1, 2 + 2 + 2},
      {"bf16", by("deepspeed", "zero2"), 0, 0, 0},
      {"bf16", by("torchtitan", "fsdp"), 0, 0, 0},
  };
  for (const Expected& expected : all) {
    CAPTURE(expected.precision);
    CAPTURE(expected.training.dump());
    const GradientSum sum = gradient_sum(of(expected.precision, expected.training));
    CHECK(sum.additions == expected.additions);
    CHECK(sum.kernels == expected.kernels);
    CHECK(sum.bytes_by_kernels == expected.bytes);
  }
}

// It reads the sum and writes it where it would have written the gradient.
TEST_CASE("A product that adds moves the sum in the gradient's place") {
  const auto bytes = [](const char* precision) {
    return gradient_sum(of(precision, by("megatron", "ddp"))).bytes_by_product;
  };
  CHECK(bytes("fp32") == 4 + 4 - 4);
  CHECK(bytes("fp16") == 2 + 2 - 2);
  CHECK(bytes("bf16") == 4 + 4 - 2);
  CHECK(bytes("amp_bf16") == 4 + 4 - 2);
}

TEST_CASE("Products add where Megatron-LM's do, and nobody else's") {
  const auto is_fused = [](const Json& training, const Json& compute = Json::object()) {
    return gradient_sum(of("bf16", training, compute)).is_fused;
  };
  const Json by_hand{{"kernels", "fused"}};
  CHECK(is_fused(by("megatron", "ddp")));
  CHECK(is_fused(by("nemo", "zero1")));
  CHECK_FALSE(is_fused(by("megatron", "ddp"), {{"gradient_accumulation_fusion", false}}));
  CHECK_FALSE(is_fused(by("megatron", "ddp"), {{"kernels", "eager"}}));
  CHECK_FALSE(is_fused(by("pytorch_ddp", "ddp"), by_hand));
  CHECK_FALSE(is_fused(by("deepspeed", "ddp"), by_hand));
}

TEST_CASE("Megatron-LM's distributed optimizer adds up in what it reduces") {
  Json training = by("megatron", "zero1");
  training["communication_data_type"] = "bf16";
  CHECK(gradient_sum(of("bf16", training)).bytes_by_kernels == 2 + 2 + 2);
}

// A layer's weight and its bias: the product adds the one, a kernel of its own the other, or one adds each.
TEST_CASE("A product adds its weights up itself, but no bias") {
  const auto launches = [](bool is_fused, std::int64_t passes) {
    Json training = by("megatron", "ddp");
    training["gradient_accumulation"] = passes;
    const LoadedScenario scenario = of("bf16", training, {{"gradient_accumulation_fusion", is_fused}});
    return LayerKernels(scenario)
        .backward(layer_named(scenario.model.model, "transformer.h.0.mlp.c_fc"))
        .passes;
  };
  CHECK(launches(false, micro_batches) == launches(true, micro_batches) + 1);
  CHECK(launches(true, 1) == launches(true, micro_batches));  // what is zeroed is added to as well
}

// Two layers of one model, each with a weight of 64 x 256 and its 256 biases, and norms and words that no product
// wrote.
TEST_CASE("What no product wrote is added by kernels, fused or not") {
  const auto bytes = [](const char* layer, bool is_fused) {
    const LoadedScenario scenario =
        of("bf16", by("megatron", "ddp"), {{"gradient_accumulation_fusion", is_fused}});
    const KernelWork work = LayerKernels(scenario).backward(layer_named(scenario.model.model, layer));
    return work.bytes + work.pass_bytes;
  };
  const std::int64_t weights = 64 * 256;
  CHECK(bytes("transformer.h.0.mlp.c_fc", false) - bytes("transformer.h.0.mlp.c_fc", true) ==
        weights * ((4 + 2 + 4) - (4 + 4 - 2)));
  CHECK(bytes("transformer.h.0.ln_1", false) == bytes("transformer.h.0.ln_1", true));
  CHECK(bytes("embedding", false) == bytes("embedding", true));
}

// Two bytes are read and four written for each weight: not where the product writes the sum itself.
TEST_CASE("A gradient that a product adds is not cast") {
  const auto passes = [](bool is_fused) {
    const LoadedScenario scenario =
        of("amp_bf16", by("megatron", "ddp"), {{"gradient_accumulation_fusion", is_fused}});
    return LayerKernels(scenario)
        .backward(layer_named(scenario.model.model, "transformer.h.0.mlp.c_fc"))
        .pass_bytes;
  };
  const std::int64_t weights = 64 * 256;
  CHECK(passes(false) - passes(true) == weights * ((2 + 4) + (4 + 4 + 4) - (4 + 4 - 2)));
}

}  // namespace lockstep::gradient_sum_test
