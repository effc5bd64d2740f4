// What a layer launches, moves and multiplies, counted by hand.

#include "sim/run/layer_kernels.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/run/describe_job.h"
#include "tests/models/instance.h"
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

// Of 2 x 32 tokens and 1,000 words. PyTorch reads and writes each logit, and on the way back fills zeros, reads those and
// the logarithms and writes; autocast's bfloat16 is cast there and back (2 + 4 bytes). One kernel reads twice and writes
// as often.
TEST_CASE("PyTorch's loss is log_softmax and nll_loss, where nobody fuses it") {
  struct Expected {
    Json compute;
    std::string precision;
    std::int64_t forward;
    std::int64_t backward;
    std::int64_t kernels;
  };
  const std::vector<Expected> all{
      {{{"kernels", "eager"}}, "fp32", 8, 16, 3},
      {{{"kernels", "eager"}}, "amp_bf16", 8 + 6, 16 + 6, 3},
      {{{"kernels", "eager"}, {"cross_entropy_loss_fusion", true}}, "fp32", 8, 8, 2},
      {{{"kernels", "compiled"}}, "fp32", 8, 8, 2},
      {{{"preset", "hf_trainer"}}, "fp32", 8, 16, 3},
      {{{"preset", "nvidia_mxnet"}}, "fp32", 8, 16, 3},
      {{{"preset", "paddle"}}, "fp32", 8, 8, 2},
      {{{"modules", "megatron"}, {"kernels", "fused"}}, "fp32", 32, 8, 7}};
  for (const Expected& expected : all) {
    INFO(expected.compute.dump(), ", ", expected.precision);
    Json given{{"cluster", {{"machine", "dgx_h100"}, {"gpus_per_node", 1}}},
               {"model",
                {{"family", "transformer"},
                 {"style", "gpt2"},
                 {"layers", 1},
                 {"hidden", 64},
                 {"heads", 8},
                 {"vocabulary", 1000},
                 {"sequence_length", 32},
                 {"batch_per_gpu", 2},
                 {"precision", expected.precision}}},
               {"training", {{"strategy", "single"}}},
               {"compute", expected.compute}};
    const LoadedScenario scenario = scenario_from(given);
    const Layer& loss = layer_named(scenario.model.model, "loss");
    const LayerKernels kernels(scenario);
    CHECK(kernels.forward(loss, false).bytes == 2 * 32 * 1000 * expected.forward);
    CHECK(kernels.backward(loss).bytes == 2 * 32 * 1000 * expected.backward);
    CHECK(kernels.backward(loss).launches == expected.kernels);
  }
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

// Of Llama's block: its first norm goes into the columns after it; the second stands before a router, and the last
// before a head, which are Megatron Core's own.
TEST_CASE("Transformer Engine's modules are its products, and the norms that stand alone") {
  const LoadedScenario scenario = mixture(true);
  const Job job = describe_job(scenario);
  std::vector<std::string> modules;
  for (std::size_t index = 0; index < job.layers.size(); ++index)
    if (job.layers[index].is_module)
      modules.push_back(job.layers[index].name);
  const std::string block = "model.layers.0.";
  CHECK(modules == std::vector<std::string>{block + "self_attn.q_proj", block + "self_attn.k_proj",
                                            block + "self_attn.v_proj", block + "attention",
                                            block + "self_attn.o_proj", block + "post_attention_layernorm",
                                            block + "experts.mlp.gate_proj", block + "experts.mlp.up_proj",
                                            block + "experts.mlp.down_proj", "model.norm"});
}

// By hand, of an element of the stream: a norm reads twice and writes once, 2 bytes wider each, and backward passes
// eight times; what reads it casts its input (6 bytes) and its gradient; a sum reads the stream and writes it wider,
// and casts the gradient of what is added.
TEST_CASE(
    "Under autocast a transformer's norms and sums are in fp32, and products cast what they read of them") {
  const auto bert = [](bool is_autocast, const char* kernels) {
    return scenario_from(
        Json{{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 1}}},
             {"model", {{"name", "bert_base"}, {"batch_per_gpu", 2}, {"precision", "amp_bf16"}}},
             {"training", {{"strategy", "single"}}},
             {"compute", {{"kernels", kernels}, {"autocast", is_autocast}}}});
  };
  const LoadedScenario scenario = bert(true, "eager");
  const LayerKernels under(scenario);
  const LayerKernels cast_whole(bert(false, "eager"));
  const std::int64_t stream = 2 * 512 * 768;  // of the batch
  struct Expected {
    const char* name;
    std::int64_t forward, backward;  // bytes of an element
    int casts, casts_back;
  };
  for (const Expected& expected :
       {Expected{"attention.output.LayerNorm", 6, 16, 0, 0}, Expected{"intermediate.dense", 6, 6 + 6, 1, 1},
        Expected{"output.dense", 0, 0, 0, 0}}) {
    CAPTURE(expected.name);
    const Layer& layer = layer_named(scenario.model.model, std::string("encoder.layer.3.") + expected.name);
    const auto total = [](const KernelWork& work) { return work.bytes + work.pass_bytes; };
    const KernelWork forward = under.forward(layer, false);
    const KernelWork backward = under.backward(layer);
    CHECK(total(forward) - total(cast_whole.forward(layer, false)) == expected.forward * stream);
    CHECK(forward.launches - cast_whole.forward(layer, false).launches == expected.casts);
    CHECK(backward.launches - cast_whole.backward(layer).launches == expected.casts_back);
  }
  // A compiler casts within its kernels.
  const LayerKernels compiled(bert(true, "compiled"));
  const Layer& norm = layer_named(scenario.model.model, "encoder.layer.3.output.LayerNorm");
  CHECK(compiled.forward(norm, false) == LayerKernels(bert(false, "compiled")).forward(norm, false));
}

}  // namespace lockstep::layer_kernels_test
