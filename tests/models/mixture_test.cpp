// Mixtures of experts and latent attention against Hugging Face's modules and the papers' counts.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/base/error.h"
#include "tests/models/instance.h"

namespace lockstep::mixture_test {
namespace {

constexpr std::string_view small = R"({"family": "transformer", "style": "llama", "layers": 3, "hidden": 64,
    "heads": 8, "kv_heads": 4, "ffn": 192, "vocabulary": 1000, "sequence_length": 32, "experts": 8,
    "experts_per_token": 2, "expert_ffn": 48, "shared_experts": 1, "dense_layers": 1})";

std::string with(std::string_view text, std::string_view more) {
  std::string changed(text);
  changed.replace(changed.rfind('}'), 1, std::string(", ") + std::string(more) + "}");
  return changed;
}

// 2 FLOPs for each weight that a token meets, and the square of attention: 2 products of 2 S heads width.
std::int64_t forward_flops_of_token(std::int64_t weights, std::int64_t layers, std::int64_t attention) {
  return 2 * weights + layers * attention;
}

}  // namespace

// DeepSeek-AI 2412.19437, section 4.2: 671 B; the checkpoint's 671,026,419,200 hold a bias of 256 experts in
// each of 58 routers, which no gradient trains.
TEST_CASE("a model like DeepSeek-V3 has its parameters but for the routers' correction biases") {
  CHECK(parameter_count(shipped_model("deepseek_v3_like")) == 671'026'419'200 - 58 * 256);
}

// Jiang et al. 2401.04088: 13 B active. Exactly: all but 6 of 8 experts of each layer; the embedding is
// looked up, not multiplied, and norms' weights (2 a layer and one) are no product.
TEST_CASE("a token of Mixtral meets two of eight experts") {
  const Model model = shipped_model("mixtral_8x7b");
  constexpr std::int64_t h = 4096;
  constexpr std::int64_t s = 4096;
  constexpr std::int64_t expert = 3 * h * 14336;
  const std::int64_t active = parameter_count(model) - 32 * 6 * expert;
  CHECK(active == 12'879'925'248);
  const std::int64_t multiplied = active - 32000 * h - (2 * 32 + 1) * h;
  CHECK(forward_flops(model) == s * forward_flops_of_token(multiplied, 32, 4 * s * h));
}

// NVIDIA-NeMo/Megatron-Bridge, docs/performance-summary-archive.md: 8,826 tokens and 203 model TFLOP a second
// on one GPU, rounded to whole ones. Megatron counts half of attention's square, backward as twice forward,
// and no routers.
TEST_CASE("a token of Qwen3 30B-A3B takes the FLOPs that Megatron-Bridge counts") {
  const Model model = shipped_model("qwen3_30b_a3b");
  std::int64_t forward = 0;
  for (const Layer& layer : model.layers)
    if (!layer.name.ends_with("router"))
      forward += layer.kind == LayerKind::attention ? layer.forward_flops / 2 : layer.forward_flops;
  const std::int64_t of_token = 3 * forward / model.tokens_per_sample;
  constexpr std::int64_t tera = 1'000'000'000'000;
  CHECK(of_token * 8826 * 10 > 2025 * tera);
  CHECK(of_token * 8826 * 10 < 2035 * tera);
}

TEST_CASE("the first layers of a mixture are dense, and shared experts stand beside the others") {
  const Model model = model_from(small);
  CHECK(layer_named(model, "model.layers.0.mlp.gate_proj").parameters.size() == 1);
  CHECK_THROWS(layer_named(model, "model.layers.1.mlp.gate_proj"));
  const Layer& shared = layer_named(model, "model.layers.1.shared_experts.mlp.up_proj");
  CHECK(std::get<GemmShape>(*shared.product) == GemmShape{.m = 32, .n = 48, .k = 64});
  const Layer& up = layer_named(model, "model.layers.1.experts.mlp.up_proj");
  CHECK(up.is_expert());
  CHECK(std::get<GemmShape>(*up.product) == GemmShape{.batch = 8, .m = 32 * 2 / 8, .n = 48, .k = 64});
  CHECK(up.forward_flops == 2 * 32 * 2 * 48 * 64);
  CHECK(up.weight_elements == 8 * 48 * 64);
}

// Every expert computes its capacity, padded: 1.25 of an even share of 8 tokens.
TEST_CASE("a capacity factor pads what every expert computes") {
  const Model model = model_from(with(small, R"("capacity_factor": 1.25)"));
  const Layer& up = layer_named(model, "model.layers.1.experts.mlp.up_proj");
  CHECK(std::get<GemmShape>(*up.product).m == 10);
  CHECK(up.forward_flops == 2 * 80 * 48 * 64);
}

TEST_CASE("joined projections are the same parameters and FLOPs in fewer products") {
  const Model apart = model_from(small);
  const Model joined = model_from(with(small, R"("joined_projections": true)"));
  CHECK(parameter_count(joined) == parameter_count(apart));
  CHECK(forward_flops(joined) == forward_flops(apart));
  // Of each block: queries, keys and values two fewer, gate and up one fewer, of shared experts too.
  CHECK(apart.layers.size() - joined.layers.size() == 3 * 2 + 1 + 2 * 2);
}

TEST_CASE("experts without a gate have one product fewer") {
  const Model gated = model_from(small);
  const Model plain = model_from(with(small, R"("gated_ffn": false)"));
  CHECK_THROWS(layer_named(plain, "model.layers.1.experts.mlp.gate_proj"));
  const Layer& activation = layer_named(plain, "model.layers.1.experts.activation");
  CHECK(activation.is_expert());
  CHECK(activation.gelu_elements == 32 * 2 * 48);
  // The gates of the dense layer, and in two layers those of 8 experts and a shared one.
  CHECK(parameter_count(gated) - parameter_count(plain) == 192 * 64 + 2 * (8 + 1) * 48 * 64);
}

TEST_CASE("what balances a router is named as Megatron-LM does, or refused") {
  CHECK(model_from(small).transformer->mixture.balancing == RouterBalancing::aux_loss);
  const auto of = [](const char* type) {
    return model_from(with(small, fmt::format(R"("moe_router_load_balancing_type": "{}")", type)));
  };
  CHECK(of("sinkhorn").transformer->mixture.balancing == RouterBalancing::sinkhorn);
  CHECK(of("none").transformer->mixture.balancing == RouterBalancing::none);
  CHECK_THROWS_AS(of("sinkhorm"), ConfigError);
}

// Megatron-LM's mixtures are GPT's: norms with biases, learned positions, and no gate.
TEST_CASE("experts stand in GPT-2's blocks too") {
  const std::string_view gpt = R"({"family": "transformer", "style": "gpt2", "layers": 2, "hidden": 64,
      "heads": 8, "vocabulary": 1000, "sequence_length": 32})";
  const Model dense = model_from(gpt);
  const Model model = model_from(with(gpt, R"("experts": 8, "experts_per_token": 1)"));
  const Layer& up = layer_named(model, "transformer.h.1.experts.mlp.c_fc");
  CHECK(std::get<GemmShape>(*up.product) == GemmShape{.batch = 8, .m = 32 / 8, .n = 256, .k = 64});
  CHECK_THROWS(layer_named(model, "transformer.h.1.mlp.c_fc"));
  // Seven experts more a layer and a router; experts have no biases.
  CHECK(parameter_count(model) - parameter_count(dense) == 2 * (7 * 2 * 256 * 64 + 8 * 64 - 256 - 64));
}

// Keys are 12 + 4 wide, values 8: 2 S^2 heads (16 + 8) forward, three products of scores and two of values
// backward.
TEST_CASE("latent attention multiplies keys as wide as both their parts and values of their own width") {
  const Model model =
      model_from(R"({"family": "transformer", "style": "llama", "layers": 1, "hidden": 64, "heads": 8,
      "head_width": 16, "vocabulary": 1000, "sequence_length": 32,
      "latent_attention": {"query_rank": 24, "kv_rank": 20, "rope_width": 4, "value_width": 8}})");
  const Layer& attention = layer_named(model, "model.layers.0.attention");
  CHECK(attention.forward_flops == 2 * 32 * 32 * 8 * (16 + 8));
  CHECK(attention.backward_input_flops == 2 * 32 * 32 * 8 * (3 * 16 + 2 * 8));
  const Layer& widened = layer_named(model, "model.layers.0.self_attn.kv_b_proj");
  CHECK(std::get<GemmShape>(*widened.product) == GemmShape{.m = 32, .n = 8 * (12 + 8), .k = 20});
  CHECK(layer_named(model, "model.layers.0.self_attn.o_proj").weight_elements == 8 * 8 * 64);
}

TEST_CASE("what a mixture needs and cannot be is an error") {
  const std::string_view plain = R"({"family": "transformer", "style": "llama", "layers": 2, "hidden": 64,
      "heads": 8, "vocabulary": 1000, "sequence_length": 32})";
  CHECK_THROWS_AS(model_from(with(plain, R"("experts": 8)")), ConfigError);
  CHECK_THROWS_WITH_AS(model_from(with(plain, R"("experts_per_token": 2)")),
                       doctest::Contains("a mixture of experts"), ConfigError);
  CHECK_NOTHROW(model_from(with(plain, R"("experts": null, "experts_per_token": null, "shared_ffn": null,
      "shared_expert_gate": null)")));
  const auto problems = [&](const char* keys) {
    try {
      model_from(with(plain, keys));
    } catch (const ConfigError& error) {
      return error.problems.size();
    }
    return std::size_t{0};
  };
  CHECK(problems(R"("moe_router_num_groups": 3)") == 1);
  CHECK(problems(R"("shared_expert_gate": true)") == 1);
  CHECK(problems(R"("experts": 8, "experts_per_token": 2, "shared_expert_gate": true)") == 1);
  CHECK(problems(R"("experts": 8, "experts_per_token": 2, "moe_router_group_topk": 1)") == 1);
  CHECK_THROWS_AS(model_from(with(plain, R"("experts": 8, "experts_per_token": 9)")), ConfigError);
  CHECK_THROWS_AS(model_from(with(plain, R"("experts": 8, "experts_per_token": 2, "dense_layers": 2)")),
                  ConfigError);
  CHECK_THROWS_AS(
      model_from(with(plain, R"("latent_attention": {"kv_rank": 8, "rope_width": 8, "value_width": 4})")),
      ConfigError);
  const std::string_view narrow = R"("latent_attention": {"kv_rank": 8, "rope_width": 4, "value_width": 4})";
  CHECK_NOTHROW(model_from(with(plain, narrow)));
  CHECK_THROWS_AS(model_from(with(with(plain, narrow), R"("query_key_norm": true)")), ConfigError);
  std::string other(with(plain, R"("experts": 8, "experts_per_token": 2)"));
  other.replace(other.find("llama"), 5, "bert");
  CHECK_THROWS_AS(model_from(other), ConfigError);
}

}  // namespace lockstep::mixture_test
