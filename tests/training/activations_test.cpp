// What backward keeps, by who writes the kernels, in bytes a token derived from the operators' saved tensors.
//
// h hidden, a heads, s tokens of a sequence, v words of the vocabulary. In half precision a block keeps, of h-wide
// tensors: the two norms' inputs, the inputs of the first projection, of the output projection and of the first of
// the feed-forward, queries, keys, values, and 4 h before and after GELU: 8 + 8 = 16 tensors, 32 bytes a column, and
// two dropout masks of a byte.

#include "sim/training/activations.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/run/describe_job.h"
#include "tests/support/scenarios.h"

namespace lockstep::training_activations_test {

using Json = nlohmann::ordered_json;

constexpr std::int64_t s = 64;
constexpr std::int64_t h = 256;
constexpr std::int64_t a = 4;
constexpr std::int64_t v = 1000;
constexpr std::int64_t samples = 3;

struct Style {
  const char* precision = "bf16";
  const char* kernels = "eager";
  const char* attention = "fused";
  const char* style = "gpt2";
  const char* torch = "2.8";
  const char* recompute = "none";
  const char* activation = "";
};

Job job_of(const Style& style) {
  Json given{{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 1}}},
             {"model",
              {{"family", "transformer"},
               {"style", style.style},
               {"layers", 3},
               {"hidden", h},
               {"heads", a},
               {"vocabulary", v},
               {"sequence_length", s},
               {"attention", style.attention},
               {"batch_per_gpu", samples},
               {"precision", style.precision}}},
             {"training",
              {{"strategy", "single"}, {"framework_version", style.torch}, {"recompute", style.recompute}}},
             {"compute", {{"kernels", style.kernels}}}};
  if (std::string_view(style.activation) != "")
    given["model"]["activation_function"] = style.activation;
  return describe_job(scenario_from(given));
}

// Of the middle block, by sample.
std::int64_t kept_by_block(const Style& style) {
  Bytes kept;
  for (const LayerWork& layer : job_of(style).layers) kept += layer.block == 1 ? layer.kept : Bytes{0};
  return kept.count() / samples;
}

struct Loss {
  std::int64_t kept, in_backward;  // bytes a logit
};

Loss loss_of(const Style& style) {
  const Job job = job_of(style);
  const LayerWork& loss = job.layers.back();
  REQUIRE(loss.is_loss);
  return {.kept = loss.kept.count() / (samples * s * v),
          .in_backward = loss.backward_workspace.count() / (samples * s * v)};
}

// Of the norms' 2 x 2 h and softmax's 2 a s more, and of GPT-2's joined projection nothing is cast twice.
TEST_CASE("Autocast keeps norms' inputs and softmax in fp32, and a cast for each product") {
  constexpr std::int64_t half = 34 * s * h + 5 * a * s * s;
  CHECK(kept_by_block({.attention = "unfused"}) == half);
  CHECK(kept_by_block({.precision = "amp_bf16", .attention = "unfused"}) ==
        half + 2 * 2 * s * h + 2 * a * s * s);
  CHECK(kept_by_block({.precision = "amp_bf16", .kernels = "fused", .attention = "unfused"}) == half);
}

// Llama: two norms of h, the products' two inputs, queries, keys, values and attention's output of h, and of the
// feed-forward's 4 h each: gate, up, the activated gate and the product: 24 h, and the logarithm of a row's sum.
// An eager root mean square norm keeps its input in fp32, not as it is, and what it made of it: 4 bytes more. Under
// autocast the second and the third product of a norm's output have a cast of their own.
TEST_CASE(
    "Eager root mean square norms keep fp32, and three products of one input three casts under autocast") {
  constexpr std::int64_t fused = 2 * 24 * s * h + 4 * a * s;
  CHECK(kept_by_block({.kernels = "fused", .style = "llama"}) == fused);
  CHECK(kept_by_block({.style = "llama"}) == fused + 2 * 4 * s * h);
  constexpr std::int64_t more_casts = 2 + 1;  // queries, keys, values; gate, up
  CHECK(kept_by_block({.precision = "amp_bf16", .style = "llama"}) ==
        fused + 2 * 4 * s * h + more_casts * 2 * s * h);
}

// transformers' softmax_backward_data hands PyTorch before 1.11 the softmax's input, which autocast leaves in half
// precision; before 1.10 autocast took GELU's 4 h in fp32.
TEST_CASE("Older releases of PyTorch keep softmax's input, and GELU's in fp32 under autocast") {
  const std::int64_t newest = kept_by_block({.precision = "amp_fp16", .attention = "unfused"});
  CHECK(kept_by_block({.precision = "amp_fp16", .attention = "unfused", .torch = "1.11"}) == newest);
  CHECK(kept_by_block({.precision = "amp_fp16", .attention = "unfused", .torch = "1.10"}) ==
        newest + 2 * a * s * s);
  CHECK(kept_by_block({.precision = "amp_fp16", .attention = "unfused", .torch = "1.7"}) ==
        newest + 2 * a * s * s + 2 * 4 * s * h);
  CHECK(kept_by_block({.precision = "fp32", .attention = "unfused", .torch = "1.7"}) -
            kept_by_block({.precision = "fp32", .attention = "unfused"}) ==
        4 * a * s * s);
}

// Of the 4 h before it: the tanh, 1 + tanh and half of it; under autocast it and the first two in fp32, and no
// half of it twice: 4 + 4 + 4 + 2 bytes where GELU's kernel keeps 2, and the product's cast is there already.
TEST_CASE("transformers' gelu_new keeps three more of what it is made of, a compiler none") {
  CHECK(kept_by_block({.activation = "gelu_new"}) - kept_by_block({}) == 3 * 2 * 4 * s * h);
  CHECK(kept_by_block({.precision = "fp32", .activation = "gelu_new"}) -
            kept_by_block({.precision = "fp32"}) ==
        3 * 4 * 4 * s * h);
  CHECK(kept_by_block({.precision = "amp_bf16", .activation = "gelu_new"}) -
            kept_by_block({.precision = "amp_bf16"}) ==
        (14 - 2) * 4 * s * h);
  CHECK(kept_by_block({.kernels = "compiled", .activation = "gelu_new"}) ==
        kept_by_block({.kernels = "compiled"}));
}

// What a checkpoint keeps of a block is its input, whatever the first operator would keep for itself.
TEST_CASE("A block that is computed again keeps its input alone") {
  Bytes kept;
  for (const LayerWork& layer : job_of({.style = "llama", .recompute = "full"}).layers)
    kept += layer.block == 1 ? layer.kept : Bytes{0};
  CHECK(kept.count() == samples * 2 * s * h);
}

// Without the block's own, "model.layers.1.".
std::vector<std::string> names_of(const Job& job, const std::vector<std::uint32_t>& layers) {
  constexpr std::size_t prefix = std::string_view("model.layers.1.").size();
  std::vector<std::string> names;
  for (const std::uint32_t layer : layers) names.push_back(job.layers[layer].name.substr(prefix));
  return names;
}

// Of queries, keys, values, output, gate, up and down projection the second, fourth and sixth; attention's output and
// the other products' stay: h + h + h + f + h for queries, values, attention, gate and down, beside the input's h.
TEST_CASE("torchtitan's op runs every second product of a block again, and all between products") {
  const Job job = job_of({.style = "llama", .recompute = "selective_op"});
  const auto last = std::find_if(job.layers.begin(), job.layers.end(), [](const LayerWork& layer) {
    return layer.block == 1 && !layer.recomputed.empty();
  });
  REQUIRE(last != job.layers.end());
  CHECK(names_of(job, last->recomputed) ==
        std::vector<std::string>{"input_layernorm", "self_attn.k_proj", "rotary_query", "rotary_key",
                                 "self_attn.o_proj", "residual_1", "post_attention_layernorm", "mlp.up_proj",
                                 "activation", "residual_2"});
  constexpr std::int64_t f = 4 * h;
  Bytes kept;
  for (const LayerWork& layer : job.layers) kept += layer.block == 1 ? layer.kept : Bytes{0};
  CHECK(kept.count() == samples * 2 * s * (5 * h + f));
}

// Korthikanti et al., arXiv 2205.05198: without the square matrices 34 s h of a layer are left.
TEST_CASE("Selective recomputation keeps no scores, whether attention is one kernel or several") {
  CHECK(kept_by_block({.attention = "unfused", .recompute = "selective"}) == 34 * s * h);
  const Job job = job_of({.attention = "unfused", .recompute = "selective"});
  for (const LayerWork& layer : job.layers)
    if (!layer.recomputed.empty()) {
      CHECK(layer.recomputed.size() == 4);  // scores, softmax, dropout, values
      CHECK(job.layers[layer.recomputed.back()].name == layer.name);
    }
}

// A product of two activations is no `mm`.
TEST_CASE("torchtitan's op saves attention in one kernel, and none of its parts") {
  for (const char* attention : {"fused", "unfused"}) {
    const Job job = job_of({.attention = attention, .style = "llama", .recompute = "selective_op"});
    const bool saves = std::ranges::any_of(job.layers, [](const LayerWork& layer) {
      return layer.is_saved && layer.name.find("_proj") == std::string::npos;
    });
    CHECK(saves == (std::string_view(attention) == "fused"));
  }
}

// A product with a bias is another operator of PyTorch's, which the policy does not know.
TEST_CASE("torchtitan's op saves no product with a bias") {
  const Job job = job_of({.recompute = "selective_op"});
  for (const LayerWork& layer : job.layers) {
    CAPTURE(layer.name);
    CHECK(layer.is_saved == (layer.block >= 0 && layer.name.find("attention") != std::string::npos));
  }
}

TEST_CASE("One block in two is computed again, and the others keep what they keep") {
  const Job plain = job_of({.style = "llama"});
  const Job full = job_of({.style = "llama", .recompute = "full"});
  const Job half = job_of({.style = "llama", .recompute = "one_in_2"});
  for (std::size_t layer = 0; layer < half.layers.size(); ++layer) {
    const LayerWork& like = (half.layers[layer].block == 1 ? full : plain).layers[layer];
    CHECK(half.layers[layer].kept == like.kept);
    CHECK(half.layers[layer].recomputed == like.recomputed);
  }
}

// Neither the norms' outputs (2 h) nor GELU's (4 h) nor masks: they follow from what is kept.
TEST_CASE("A compiler keeps neither masks nor what is pointwise of what it keeps") {
  CHECK(kept_by_block({.kernels = "compiled"}) == 2 * (16 - 6) * s * h + 4 * a * s);
}

// arXiv 2411.09009, table 1: 8,192 tokens, 256,000 words in bf16: 28,000 MB eager are 14 bytes a logit, 16,000 MB
// compiled 8.
TEST_CASE("A logit takes 14 bytes in eager half precision, 8 compiled, 6 fused; in fp32 16, 8 and 8") {
  const auto of = [](const char* precision, const char* kernels) {
    const Loss loss = loss_of({.precision = precision, .kernels = kernels});
    return std::pair{loss.kept, loss.in_backward};
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;
  CHECK(of("bf16", "eager") == Pair{2 + 4, 4 + 4});
  CHECK(of("amp_fp16", "eager") == Pair{2 + 4, 4 + 4});
  CHECK(of("bf16", "compiled") == Pair{2, 4 + 2});
  CHECK(of("bf16", "fused") == Pair{4, 2});
  CHECK(of("fp32", "eager") == Pair{4 + 4, 4 + 4});
  CHECK(of("fp32", "compiled") == Pair{4, 4});
  CHECK(of("fp32", "fused") == Pair{4, 4});
}

// In and out 2 x h each way for queries and output, the same for keys and values; and 4 bytes of h for the sums.
TEST_CASE("Fused attention adds up its queries' gradient in fp32 while it runs backward") {
  for (const LayerWork& layer : job_of({}).layers)
    if (layer.name.ends_with(".attention"))
      CHECK(layer.backward_workspace.count() == samples * (2 * 4 * s * h + 4 * s * h));
}

}  // namespace lockstep::training_activations_test
