// T5 against Hugging Face's modeling_t5.py.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/base/error.h"
#include "tests/models/instance.h"

namespace lockstep::encoder_decoder_test {

constexpr std::int64_t hidden = 512;
constexpr std::int64_t ffn = 2048;
constexpr std::int64_t length = 128;
constexpr std::int64_t written = 32;

std::string t5_small(std::string_view more = "") {
  return fmt::format(R"({{"family": "encoder_decoder", "layers": 6, "hidden": {}, "heads": 8, "ffn": {},
      "vocabulary": 32128, "sequence_length": {}, "decoder_length": {}{}}})",
                     hidden, ffn, length, written, more);
}

// An encoder's block has seven tensors and a decoder's twelve; beside them a table of distances and a last norm each, and
// the words.
TEST_CASE("T5 registers its tensors as Hugging Face does") {
  const Model model = model_from(t5_small());
  CHECK(model.parameters.size() == 1 + 6 * 8 + 6 * 13 + 2 + 2);
  CHECK(parameter_count(model) == 60'506'624);
  CHECK(model.parameters[0].name == "shared.weight");
  CHECK(model.parameters[5].name == "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
  CHECK(model.parameters[6].name == "encoder.block.0.layer.0.layer_norm.weight");
  CHECK(model.parameters.back().name == "decoder.final_layer_norm.weight");
}

TEST_CASE("a decoder looks at all that the encoder read") {
  const Model model = model_from(t5_small());
  const Layer& scores = layer_named(model, "decoder.block.3.layer.1.EncDecAttention.scores");
  CHECK(scores.forward_flops == 2 * written * length * hidden);
  const Layer& keys = layer_named(model, "decoder.block.3.layer.1.EncDecAttention.k");
  CHECK(keys.forward_flops == 2 * length * hidden * hidden);
  const Layer& own = layer_named(model, "decoder.block.3.layer.0.SelfAttention.scores");
  CHECK(own.forward_flops == 2 * written * written * hidden);
}

TEST_CASE("the tied table is completed by the look-up that backward meets last") {
  const Model model = model_from(t5_small());
  CHECK(model.layers.front().name == "encoder.embedding");
  CHECK(model.layers.front().parameters == std::vector<std::uint32_t>{0});
  CHECK(layer_named(model, "lm_head").parameters.empty());
  const Model apart = model_from(t5_small(R"(, "tied_embedding": false, "gated_ffn": true)"));
  CHECK(apart.parameters.back().name == "lm_head.weight");
  CHECK(layer_named(apart, "lm_head").parameters.size() == 1);
}

TEST_CASE("each parameter's gradient is completed by one layer") {
  const Model model = model_from(t5_small(R"(, "gated_ffn": true)"));
  std::vector<int> completed(model.parameters.size(), 0);
  for (const Layer& layer : model.layers)
    for (const std::uint32_t parameter : layer.parameters) ++completed[parameter];
  for (const int count : completed) CHECK(count == 1);
}

TEST_CASE("sizes that no sum could hold are refused") {
  CHECK_THROWS_AS(model_from(R"({"family": "encoder_decoder", "layers": 1000, "hidden": 131072, "heads": 4096,
      "head_width": 4096, "ffn": 1048576, "vocabulary": 8388608, "sequence_length": 65536})"),
                  ConfigError);
}

}  // namespace lockstep::encoder_decoder_test
