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

// A pass of autograd reads the sum and the gradient and writes the sum; a product that adds reads the sum, and writes
// it in the place of the gradient.
TEST_CASE("A sum is read and written once a micro-batch, as wide as it stands") {
  struct Expected {
    const char* precision;
    Json training;
    Json compute;
    std::int64_t additions;
    std::int64_t element_bytes;
  };
  const Json unfused{{"gradient_accumulation_fusion", false}};
  const Json by_hand{{"kernels", "fused"}};
  const std::vector<Expected> all{
      {"fp32", by("pytorch_ddp", "ddp"), Json::object(), micro_batches - 1, 4 + 4 + 4},
      {"fp16", by("pytorch_ddp", "ddp"), Json::object(), micro_batches - 1, 2 + 2 + 2},
      {"fp16", by("pytorch_ddp", "ddp"), by_hand, micro_batches - 1, 2 + 2 - 2},
      {"fp16", by("megatron", "ddp"), Json::object(), micro_batches, 2 + 2 - 2},
      {"bf16", by("megatron", "ddp"), Json::object(), micro_batches, 4 + 4 - 2},
      {"bf16", by("megatron", "ddp"), unfused, micro_batches, 4 + 2 + 4},
      {"bf16", by("megatron", "zero1"), Json::object(), micro_batches, 4 + 4 - 2},
      {"bf16", by("deepspeed", "ddp"), by_hand, micro_batches, 4 + 2 + 4},
      {"fp16", by("deepspeed", "ddp"), by_hand, micro_batches - 1, 2 + 2 + 2},
      {"bf16", by("deepspeed", "zero1"), by_hand, micro_batches - 1, 2 + 2 + 2},
      {"bf16", by("deepspeed", "zero2"), by_hand, 0, 0},
      {"bf16", by("torchtitan", "fsdp"), Json::object(), 0, 0},
  };
  for (const Expected& expected : all) {
    CAPTURE(expected.precision);
    CAPTURE(expected.training.dump());
    CAPTURE(expected.compute.dump());
    const GradientSum sum = gradient_sum(of(expected.precision, expected.training, expected.compute));
    CHECK(sum.additions == expected.additions);
    CHECK(sum.element_bytes == expected.element_bytes);
  }
}

TEST_CASE("Megatron-LM's distributed optimizer adds up in what it reduces") {
  Json training = by("megatron", "zero1");
  training["communication_data_type"] = "bf16";
  CHECK(gradient_sum(of("bf16", training)).element_bytes == 2 + 2 - 2);
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

}  // namespace lockstep::gradient_sum_test
