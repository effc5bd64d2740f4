// What a layer launches, moves and multiplies, counted by hand.

#include "sim/run/layer_kernels.h"

#include <doctest/doctest.h>

#include <variant>

#include "tests/support/scenarios.h"

namespace lockstep::layer_kernels_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t experts = 8;

LoadedScenario mixture(bool is_grouped) {
  return scenario_from(Json{{"cluster", {{"machine", "dgx_h100"}, {"gpus_per_node", 1}}},
                            {"model",
                             {{"family", "transformer"},
                              {"style", "llama"},
                              {"layers", 1},
                              {"hidden", 64},
                              {"heads", 8},
                              {"ffn", 96},
                              {"vocabulary", 1000},
                              {"sequence_length", 32},
                              {"experts", experts},
                              {"experts_per_token", 2},
                              {"batch_per_gpu", 2},
                              {"precision", "bf16"}}},
                            {"training", {{"strategy", "single"}}},
                            {"compute", {{"modules", "megatron_core"}, {"moe_grouped_gemm", is_grouped}}}});
}

const Layer& layer_named(const Model& model, std::string_view name) {
  for (const Layer& layer : model.layers)
    if (layer.name == name)
      return layer;
  throw std::out_of_range("no layer of that name");
}

}  // namespace

TEST_CASE("experts one after another move and compute what one product does, in a kernel for each") {
  const LoadedScenario apart = mixture(false);
  const LoadedScenario grouped = mixture(true);
  const LayerKernels by_module(apart);
  const LayerKernels at_once(grouped);
  for (const char* name : {"experts.mlp.up_proj", "experts.activation", "experts.mlp.down_proj"}) {
    CAPTURE(name);
    const Layer& layer = layer_named(apart.model.model, std::string("model.layers.0.") + name);
    CHECK(by_module.modules(layer) == experts);
    CHECK(at_once.modules(layer) == 1);
    KernelWork expected = at_once.forward(layer, false);
    expected.launches *= experts;
    CHECK(by_module.forward(layer, false) == expected);
    CHECK(by_module.backward(layer).launches == experts * at_once.backward(layer).launches);
    CHECK(by_module.backward(layer).bytes == at_once.backward(layer).bytes);
  }
  const Layer& attention = layer_named(apart.model.model, "model.layers.0.self_attn.o_proj");
  CHECK(by_module.modules(attention) == 1);
  CHECK(by_module.forward(attention, false) == at_once.forward(attention, false));
}

// 32 tokens of two sequences visit two of eight experts each: 16 rows an expert.
TEST_CASE("an expert alone is a product of its own rows") {
  const LoadedScenario scenario = mixture(false);
  const Layer& up = layer_named(scenario.model.model, "model.layers.0.experts.mlp.up_proj");
  const LayerKernels kernels(scenario);
  const Kernel one{.shape = GemmShape{.batch = 1, .m = 16, .n = 96, .k = 64},
                   .direction = KernelDirection::forward};
  CHECK(kernels.forward_products(up) == std::vector<Kernel>(experts, one));
  CHECK(kernels.backward_products(up).size() == 2 * experts);
  CHECK(kernels.weights_products(up).size() == experts);
  CHECK(LayerKernels(mixture(true)).forward_products(up).size() == 1);
}

}  // namespace lockstep::layer_kernels_test
