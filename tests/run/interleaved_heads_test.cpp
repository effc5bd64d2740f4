// Which products of attention are of views that lie between one another, and what that costs.

#include <doctest/doctest.h>

#include "sim/compute/kernel_time.h"
#include "sim/run/layer_kernels.h"
#include "tests/models/instance.h"
#include "tests/support/scenarios.h"

namespace lockstep::interleaved_heads_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t head_width = 100;

LoadedScenario of(const char* modules, const char* attention) {
  return scenario_from(Json{{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 1}}},
                            {"model",
                             {{"family", "transformer"},
                              {"style", "gpt2"},
                              {"layers", 1},
                              {"hidden", 8 * head_width},
                              {"heads", 8},
                              {"vocabulary", 1024},
                              {"sequence_length", 512},
                              {"attention", attention},
                              {"batch_per_gpu", 4},
                              {"precision", "bf16"}}},
                            {"training", {{"strategy", "single"}}},
                            {"compute", {{"modules", modules}}}});
}

Kernel product_of(const LoadedScenario& scenario, const char* layer) {
  return LayerKernels(scenario).forward_products(layer_named(scenario.model.model, layer)).front();
}

}  // namespace

TEST_CASE("Megatron-LM multiplies heads where they lie, PyTorch copies them first, one kernel pads them") {
  const auto apart = [](const char* modules, const char* attention, const char* layer) {
    return product_of(of(modules, attention), layer).interleaved_by;
  };
  CHECK(apart("megatron", "unfused", "transformer.h.0.attention.scores") == head_width);
  CHECK(apart("torch", "unfused", "transformer.h.0.attention.scores") == 0);
  CHECK(apart("megatron", "fused", "transformer.h.0.attention") == 0);
  CHECK(apart("megatron", "unfused", "transformer.h.0.mlp.c_fc") == 0);  // of no heads
}

// Heads of 100 halves begin at every eighth byte, of 104 at every sixteenth.
TEST_CASE("Heads that begin between vector loads are multiplied by the lanes, others by tensor cores") {
  const LoadedScenario scenario = of("megatron", "unfused");
  const GpuSpec& gpu = scenario.cluster.gpu;
  const auto time = [&](std::int64_t apart) {
    Kernel kernel{GemmShape{.batch = 32, .m = 512, .n = 512, .k = 128}};
    kernel.interleaved_by = apart;
    return product_time(gpu, Operands::of(Precision::bf16), kernel);
  };
  CHECK(time(104) == time(0));
  CHECK(time(100) > time(0) * 2);
}

}  // namespace lockstep::interleaved_heads_test
