// Transformers against Hugging Face, llm-foundry and Korthikanti et al.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/base/error.h"
#include "tests/models/instance.h"
#include "tests/support/ready_order.h"

namespace lockstep::transformer_test {

constexpr std::string_view plain_form = R"({"family": "transformer", "layers": 2, "hidden": 64, "heads": 8,
    "kv_heads": 8, "ffn": 256, "vocabulary": 1000, "sequence_length": 32})";

TEST_CASE("GPT-2 registers its tensors as Hugging Face does") {
  const Model model = shipped_model("gpt2");
  REQUIRE(model.parameters.size() == 148);
  const std::vector<std::string> first = {"transformer.wte.weight",
                                          "transformer.wpe.weight",
                                          "transformer.h.0.ln_1.weight",
                                          "transformer.h.0.ln_1.bias",
                                          "transformer.h.0.attn.c_attn.weight",
                                          "transformer.h.0.attn.c_attn.bias",
                                          "transformer.h.0.attn.c_proj.weight",
                                          "transformer.h.0.attn.c_proj.bias",
                                          "transformer.h.0.ln_2.weight"};
  for (std::size_t index = 0; index < first.size(); ++index)
    CHECK(model.parameters[index].name == first[index]);
  CHECK(model.parameters[4].shape == std::vector<std::int64_t>{768, 2304});
  CHECK(model.parameters[147].name == "transformer.ln_f.bias");
}

// Megatron-LM's q_layernorm and k_layernorm: as wide as a head, and LayerNorms as the block's others.
TEST_CASE("GPT-2's style norms queries and keys where it is asked to") {
  std::string text(plain_form);
  text.replace(text.rfind('}'), 1, R"(, "query_key_norm": true})");
  const Model model = model_from(text);
  const Layer& norm = layer_named(model, "transformer.h.1.attn.q_layernorm");
  CHECK(norm.parameters.size() == 2);
  CHECK(norm.forward_elements == 2 * 32 * 64);
  CHECK(parameter_count(model) - parameter_count(model_from(plain_form)) == 2 * 2 * 2 * 8);
  text.replace(text.find("\"layers\""), 0, R"("style": "mpt", )");
  CHECK_THROWS_AS(model_from(text), ConfigError);
}

TEST_CASE("keys of another style are refused by what they belong to, and null is as good as left out") {
  const auto plus = [](const std::string& keys) {
    std::string text(plain_form);
    return text.replace(text.rfind('}'), 1, ", " + keys + "}");
  };
  const auto refused = [&](const std::string& keys, const char* words) {
    CHECK_THROWS_WITH_AS(model_from(plus(keys)), doctest::Contains(words), ConfigError);
  };
  refused(R"("token_types": 2)", "belongs to an encoder");
  refused(R"("objective": "encoder")", "belongs to an encoder");
  refused(R"("predictions": 8)", "belongs to an encoder");
  refused(R"("ffn_biases": false)", "expected \"biases\": false");
  refused(R"("attention_biases": "inputs")", "expected \"biases\": false");
  CHECK_NOTHROW(model_from(plus(R"("attention_biases": "all", "ffn_biases": true)")));
  CHECK_NOTHROW(model_from(plus(R"("token_types": null, "predictions": null, "objective": null)")));
  // Two layers' 4 x 64 outputs of the first product and 64 of the second.
  CHECK(parameter_count(model_from(plus(R"("biases": false, "ffn_biases": true)"))) -
            parameter_count(model_from(plus(R"("biases": false)"))) ==
        2 * (256 + 64));
}

// One kernel reads scores and writes weights; backward reads two and writes one. Of operators scale and mask read and
// write each way beside it, and one more multiplies the gradient by the weights: reads two and writes one as well.
TEST_CASE(
    "softmax is one kernel each way; of operators scale and mask stand beside it, and a product backward") {
  std::string text(plain_form);
  text.replace(text.rfind('}'), 1, R"(, "attention": "unfused"})");
  const Model model = model_from(text);
  const Layer& softmax = layer_named(model, "transformer.h.1.attention.softmax");
  constexpr std::int64_t scores = 8 * 32 * 32;
  CHECK(softmax.forward_elements == 2 * scores);
  CHECK(softmax.eager_forward_elements == (2 + 2) * scores);
  CHECK(softmax.backward_elements == 3 * scores);
  CHECK(softmax.eager_backward_elements == (2 + 2 + 3) * scores);
  CHECK(softmax.forward_kernels == 1);
  CHECK(softmax.eager_forward_kernels == 2);
  CHECK(softmax.backward_kernels == 1);
  CHECK(softmax.eager_backward_kernels == 3);
}

TEST_CASE("nobody writes into a product, and into tokens' norms, softmax and embeddings a compiler alone") {
  std::string text(plain_form);
  text.replace(text.rfind('}'), 1, R"(, "attention": "unfused", "dropout": true})");
  const Model model = model_from(text);
  const auto merged_by = [&](const char* name) {
    return layer_named(model, std::string("transformer.h.1.") + name).merged_by;
  };
  CHECK(merged_by("attention.softmax") == MergedBy::nobody);
  CHECK(merged_by("attention.dropout") == MergedBy::compiler);
  CHECK(merged_by("activation") == MergedBy::nobody);
  CHECK(merged_by("residual_1") == MergedBy::nobody);
  CHECK(layer_named(model, "embedding.dropout").merged_by == MergedBy::compiler);
}

// Megatron-LM's baddbmm reads views of queries, keys and values, whose gradients are put together (torch.split's
// backward); what comes out is permuted and made contiguous, whose gradient is read as a view.
TEST_CASE("heads are read where they lie, and what comes out of attention is not") {
  std::string text(plain_form);
  text.replace(text.rfind('}'), 1, R"(, "attention": "unfused"})");
  const Model model = model_from(text);
  const Layer& heads = layer_named(model, "transformer.h.1.attention.heads");
  CHECK(heads.is_view_forward);
  CHECK_FALSE(heads.is_view_backward);
  CHECK(heads.backward_elements == 2 * 3 * 32 * 64);
  const Layer& merged = layer_named(model, "transformer.h.1.attention.merged");
  CHECK_FALSE(merged.is_view_forward);
  CHECK(merged.is_view_backward);
  CHECK(merged.forward_elements == 2 * 32 * 64);
}

TEST_CASE("queries and keys are turned in kernels of their own, apart or as columns of one product") {
  for (const char* name : {"llama3_8b", "nemotron4_15b"}) {
    CAPTURE(name);
    int turned = 0;
    for (const Layer& layer : shipped_model(name).layers) {
      if (layer.name.find("rotary") == std::string::npos)
        continue;
      ++turned;
      CHECK(layer.merged_by == MergedBy::nobody);
    }
    CHECK(turned > 0);
  }
}

TEST_CASE("GPT-2's GELU is a formula where its file says so, and gates have none") {
  CHECK(layer_named(shipped_model("gpt2"), "transformer.h.3.activation").composition->by ==
        ComposedBy::operators);
  const auto with = [](std::string_view keys) {
    std::string text(plain_form);
    return text.replace(text.rfind('}'), 1, keys);
  };
  CHECK(layer_named(model_from(plain_form), "transformer.h.1.activation").composition->by ==
        ComposedBy::primitives);
  CHECK_THROWS_AS(model_from(with(R"(, "activation_function": "relu"})")), ConfigError);
  CHECK_THROWS_AS(model_from(with(R"(, "activation_function": "gelu_new", "gated_ffn": true})")),
                  ConfigError);
}

TEST_CASE("tensor counts of language models are the published ones") {
  CHECK(shipped_model("gpt2_medium").parameters.size() == 292);
  CHECK(shipped_model("gpt2_large").parameters.size() == 436);
  CHECK(shipped_model("gpt2_xl").parameters.size() == 580);
  CHECK(shipped_model("bert_base").parameters.size() == 199);
  CHECK(shipped_model("bert_large").parameters.size() == 391);
  CHECK(shipped_model("llama2_7b").parameters.size() == 1 + 32 * 9 + 2);
}

TEST_CASE("a tied embedding is completed last in backward, by the embedding and not by the projection") {
  const Model model = shipped_model("gpt2");
  CHECK(testing::gradient_ready_order(model).back() == 0);
  CHECK(model.layers.front().parameters.back() == 0);
  const Layer& projection = layer_named(model, "lm_head");
  CHECK(projection.parameters.empty());
  CHECK(projection.weight_elements == 50257 * 768);
}

// BertForPreTraining of Hugging Face: 7 tensors more than BertModel.
TEST_CASE("BERT's pretraining heads add the projection to the vocabulary") {
  constexpr std::string_view bert_large = R"({"family": "transformer", "style": "bert", "layers": 24,
      "hidden": 1024, "heads": 16, "ffn": 4096, "vocabulary": 30522, "sequence_length": 128,
      "positions": 512, "objective": "pretraining"})";
  const Model model = model_from(bert_large);
  CHECK(model.parameters.size() == 398);
  CHECK(parameter_count(model) == 336'226'108);
  CHECK(model.parameters[0].name == "bert.embeddings.word_embeddings.weight");
  CHECK(layer_named(model, "cls.predictions.decoder").forward_flops == 2LL * 128 * 1024 * 30522);
}

// Megatron-LM's BERT multiplies queries, keys and values at once: the same weights in fewer tensors.
TEST_CASE("BERT's projections may be joined, and GPT-2's stand together as they are") {
  const std::string_view bert = R"({"family": "transformer", "style": "bert", "layers": 2, "hidden": 64,
      "heads": 8, "vocabulary": 1000, "sequence_length": 32})";
  std::string text(bert);
  text.replace(text.rfind('}'), 1, R"(, "joined_projections": true})");
  const Model joined = model_from(text);
  const Model apart = model_from(bert);
  CHECK(parameter_count(joined) == parameter_count(apart));
  CHECK(joined.parameters.size() == apart.parameters.size() - 2 * 4);
  CHECK(forward_flops(joined) == forward_flops(apart));
  text.replace(text.find("bert"), 4, "gpt2");
  CHECK_THROWS_AS(model_from(text), ConfigError);
}

// V h + positions h + L (12 h^2 + 13 h) + 2 h with V 50257, h 12288, L 96, 2048 positions.
TEST_CASE("GPT-3 has the parameters of GPT-2's formula at its sizes") {
  constexpr std::int64_t hidden = 12288;
  constexpr std::int64_t expected =
      (50257 + 2048) * hidden + 96 * (12 * hidden * hidden + 13 * hidden) + 2 * hidden;
  CHECK(parameter_count(shipped_model("gpt3_175b")) == expected);
}

// Parmar et al. 2402.16819, section 2: 12.5 B beside the embeddings in and out.
TEST_CASE("Nemotron-4 15B has the parameters that its report rounds") {
  const Model model = shipped_model("nemotron4_15b");
  constexpr std::int64_t tables = 2LL * 256'000 * 6144;
  constexpr std::int64_t tenth = 100'000'000;
  CHECK((parameter_count(model) - tables + tenth / 2) / tenth == 125);
}

// llm-foundry's benchmark table: NumParams of 7b at each SeqLen; the positions are learned.
TEST_CASE("MPT learns as many positions as the sequence is long") {
  const std::vector<std::pair<std::int64_t, std::int64_t>> published = {
      {1024, 6'654'664'704}, {2048, 6'658'859'008}, {8192, 6'684'024'832}, {65536, 6'918'905'856}};
  for (const auto& [length, parameters] : published) {
    const Model model = shipped_model("mpt_7b", {.sequence_length = length});
    CHECK(model.tokens_per_sample == length);
    CHECK(parameter_count(model) == parameters);
  }
}

// Per token and layer 2 (4 h^2 + 2 h f) = 24 h^2 at f = 4 h, and 4 s h of attention; 2 h V of projection.
TEST_CASE("forward operations follow the formula of the sizes") {
  const Model model = shipped_model("gpt2");
  constexpr std::int64_t s = 1024;
  constexpr std::int64_t h = 768;
  CHECK(forward_flops(model) == 12 * (24 * s * h * h + 4 * s * s * h) + 2 * s * h * 50257);
}

// The same with grouped keys and three feed-forward matrices.
TEST_CASE("Llama 3 405B's operations fit in 64 bits and follow the formula") {
  const Model model = shipped_model("llama3_405b");
  constexpr std::int64_t s = 8192;
  constexpr std::int64_t h = 16384;
  constexpr std::int64_t weights = 2 * h * h + 2 * h * (h / 16) + 3 * h * 53248;
  CHECK(forward_flops(model) == 126 * (2 * s * weights + 4 * s * s * h) + 2 * s * h * 128256);
  CHECK(backward_flops(model) > 2 * forward_flops(model));
}

// Korthikanti et al. 2205.05198, section 4.1: s b h (34 + 5 a s / h) bytes at 16 bits, b = 1.
TEST_CASE("a layer without fused attention keeps exactly Korthikanti's bytes") {
  for (const std::string name : {"gpt2", "gpt2_xl", "gpt3_175b", "bert_large"}) {
    CAPTURE(name);
    const Model model = shipped_model(name);
    const std::int64_t s = model.tokens_per_sample;
    const std::int64_t h = model.transformer->hidden;
    const std::int64_t a = model.transformer->heads;
    for (int block = 1; block < model.transformer->layers; ++block) {
      CHECK(saved_bytes_of_block(model, block) == 34 * s * h + 5 * a * s * s);
    }
  }
}

// The same paper, equation 2 and section 4.2.1: s b h (10 + 24 / t + 5 a s / (h t)).
TEST_CASE("tensor parallelism divides 24 of the 34 kept bytes per element") {
  const Model model = shipped_model("gpt2");
  constexpr std::int64_t s = 1024;
  constexpr std::int64_t h = 768;
  std::int64_t whole = 0;
  std::int64_t divided = 0;
  for (const Layer& layer : model.layers) {
    if (layer.block != 1)
      continue;
    const bool divides = layer.split == TensorSplit::row || layer.split == TensorSplit::local;
    (divides ? divided : whole) += 2 * layer.saved_elements + layer.saved_bytes;
  }
  CHECK(whole == 10 * s * h);
  CHECK(divided == 24 * s * h + 5 * 12 * s * s);
}

TEST_CASE("fused attention keeps the sum of each row, nothing of the size of the sequence squared") {
  const Model unfused = model_from(plain_form);
  std::string text(plain_form);
  text.replace(text.rfind('}'), 1, R"(, "attention": "fused"})");
  const Model fused = model_from(text);
  const std::int64_t square = 8 * 32 * 32;
  const std::int64_t row_sums = 4 * 8 * 32;  // 8 heads of 32 tokens, in fp32
  CHECK(saved_bytes_of_block(unfused, 1) - saved_bytes_of_block(fused, 1) == 5 * square - row_sums);
  CHECK(forward_flops(unfused) == forward_flops(fused));
}

TEST_CASE("the plain form is GPT-2's style, and Llama's when keys are grouped") {
  CHECK(model_from(plain_form).parameters[0].name == "transformer.wte.weight");
  std::string grouped(plain_form);
  grouped.replace(grouped.find("\"kv_heads\": 8"), 13, "\"kv_heads\": 2");
  const Model model = model_from(grouped);
  CHECK(model.parameters[0].name == "model.embed_tokens.weight");
  CHECK(model.parameters[2].shape == std::vector<std::int64_t>{64 * 2 / 8, 64});
}

TEST_CASE("a sequence longer than the learned positions is an error") {
  CHECK_THROWS_AS(shipped_model("gpt2", {.sequence_length = 2048}), ConfigError);
  CHECK(shipped_model("gpt2", {.sequence_length = 512}).tokens_per_sample == 512);
}

TEST_CASE("heads that do not divide are an error") {
  std::string text(plain_form);
  text.replace(text.find("\"heads\": 8"), 10, "\"heads\": 7");
  CHECK_THROWS_AS(model_from(text), ConfigError);
}

TEST_CASE("sizes whose operations would not fit in 64 bits are an error") {
  CHECK_THROWS_AS(model_from(R"({"family": "transformer", "layers": 10000, "hidden": 1048576, "heads": 1,
      "vocabulary": 1000, "sequence_length": 16777216})"),
                  ConfigError);
}

}  // namespace lockstep::transformer_test
