// T5 and its relatives: an encoder whose output every block of a decoder looks at.
//
// Keys: "layers", "hidden", "heads", "head_width" (hidden / heads), "ffn", "vocabulary", "sequence_length";
//   decoder_layers     left out: as many as the encoder's
//   decoder_length     tokens of what is written; left out: as many as are read
//   gated_ffn          T5 1.1 and Flan-T5 (false)
//   tied_embedding     the projection to the vocabulary is the embedding (true)
//   position_buckets   rows of the table of relative positions, of which each of the two stacks has one (32)
//
// Attention is unfused: what positions add to its scores is learned. Reference: Hugging Face modeling_t5.py;
// Raffel et al. 1910.10683.

#include <fmt/format.h>

#include <string>
#include <utility>

#include "models/instance_keys.h"
#include "models/token_network.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

constexpr std::int64_t largest_dimension = 1 << 17;
constexpr std::int64_t longest_text = 1 << 16;

struct EncoderDecoderSizes {
  std::int64_t layers = 0;
  std::int64_t decoder_layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;  // of all heads
  std::int64_t ffn = 0;
  std::int64_t vocabulary = 0;
  std::int64_t position_buckets = 0;
  std::int64_t length = 0;
  std::int64_t decoder_length = 0;
  bool is_gated = false;
  bool ties_embedding = true;
};

std::int64_t read_width(const JsonReader& json, const EncoderDecoderSizes& sizes) {
  const auto head_width = json.optional("head_width");
  if (!head_width && sizes.hidden % sizes.heads != 0)
    json.required("heads").problem("does not divide \"hidden\"");
  return sizes.heads * (head_width ? count_of(*head_width, 1 << 12)
                                   : std::max<std::int64_t>(sizes.hidden / sizes.heads, 1));
}

// An estimate from above: operations and bytes of one sequence must stay far below 2^63.
void check_total(const JsonReader& json, EncoderDecoderSizes& sizes) {
  const std::int64_t longest = std::max(sizes.length, sizes.decoder_length);
  const auto length = static_cast<double>(longest);
  const auto hidden = static_cast<double>(sizes.hidden);
  const auto width = static_cast<double>(sizes.width);
  const double block = length * (32 * hidden * width + 24 * hidden * static_cast<double>(sizes.ffn) +
                                 32 * length * (width + 8 * static_cast<double>(sizes.heads)));
  const double output = 8 * length * hidden * static_cast<double>(sizes.vocabulary);
  if (static_cast<double>(sizes.layers + sizes.decoder_layers) * block + output > 1e18) {
    json.problem(fmt::format(
        "these sizes make a model of more than 1e18 operations per sequence of {} tokens", longest));
    sizes.length = sizes.decoder_length = sizes.layers = sizes.decoder_layers = 1;
  }
}

EncoderDecoderSizes read_sizes(const JsonReader& json, const ModelRequest& request) {
  EncoderDecoderSizes sizes{.layers = required_count(json, "layers", 1000),
                            .hidden = required_count(json, "hidden", largest_dimension),
                            .heads = required_count(json, "heads", 1 << 12),
                            .vocabulary = required_count(json, "vocabulary", 1 << 23)};
  sizes.decoder_layers = count_or(json, "decoder_layers", sizes.layers, 1000);
  sizes.width = read_width(json, sizes);
  sizes.ffn = count_or(json, "ffn", 4 * sizes.hidden, 8 * largest_dimension);
  sizes.position_buckets = count_or(json, "position_buckets", 32, longest_text);
  const std::int64_t own = required_count(json, "sequence_length", longest_text);
  sizes.length = request.sequence_length.value_or(own);
  sizes.decoder_length = count_or(json, "decoder_length", sizes.length, longest_text);
  sizes.is_gated = flag_or(json, "gated_ffn", false);
  sizes.ties_embedding = flag_or(json, "tied_embedding", true);
  if (sizes.length > longest_text) {
    json.problem("without a fused attention kernel a sequence has at most 65536 tokens");
    sizes.length = 1;
  }
  check_total(json, sizes);
  return sizes;
}

// One of the two: a column of blocks over one stream of tokens.
struct Stack {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t length = 0;
  bool is_decoder = false;

  std::string part(std::int64_t block, int index) const {
    return fmt::format("{}.block.{}.layer.{}.", name, block, index);
  }
};

class EncoderDecoderWriter {
 public:
  explicit EncoderDecoderWriter(const EncoderDecoderSizes& sizes) : sizes_(sizes) {}

  Model write() {
    builder_.add_parameter("shared.weight", {sizes_.vocabulary, sizes_.hidden});
    register_stack(encoder_);
    register_stack(decoder_);
    if (!sizes_.ties_embedding)
      builder_.add_parameter("lm_head.weight", {sizes_.vocabulary, sizes_.hidden});
    const Tokens read = write_stack(encoder_, nullptr);
    const Tokens written = write_stack(decoder_, &read);
    write_head(written);
    Model model = builder_.finish();
    model.tokens_per_sample = sizes_.length;
    model.input_bytes = 8 * (sizes_.length + sizes_.decoder_length);
    return model;
  }

 private:
  void register_linear(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
    builder_.add_parameter(name + ".weight", {outputs, inputs});
  }
  void register_norm(const std::string& name) { builder_.add_parameter(name + ".weight", {sizes_.hidden}); }

  void register_attention(const std::string& prefix, const char* kind, bool has_positions) {
    const std::string name = prefix + kind;
    for (const char* projection : {".q", ".k", ".v"})
      register_linear(name + projection, sizes_.hidden, sizes_.width);
    register_linear(name + ".o", sizes_.width, sizes_.hidden);
    if (has_positions)
      builder_.add_parameter(name + ".relative_attention_bias.weight",
                             {sizes_.position_buckets, sizes_.heads});
    register_norm(prefix + "layer_norm");
  }

  void register_feed_forward(const std::string& prefix) {
    const std::string name = prefix + "DenseReluDense.";
    register_linear(name + (sizes_.is_gated ? "wi_0" : "wi"), sizes_.hidden, sizes_.ffn);
    if (sizes_.is_gated)
      register_linear(name + "wi_1", sizes_.hidden, sizes_.ffn);
    register_linear(name + "wo", sizes_.ffn, sizes_.hidden);
    register_norm(prefix + "layer_norm");
  }

  void register_stack(const Stack& stack) {
    for (std::int64_t block = 0; block < stack.layers; ++block) {
      register_attention(stack.part(block, 0), "SelfAttention", block == 0);
      if (stack.is_decoder)
        register_attention(stack.part(block, 1), "EncDecAttention", false);
      register_feed_forward(stack.part(block, stack.is_decoder ? 2 : 1));
    }
    register_norm(stack.name + ".final_layer_norm");
  }

  // Backward ends with the encoder's look-up, which completes the table's gradient.
  Tokens write_words(const Stack& stack) {
    const Tokens stream = network_.tokens(stack.length, sizes_.hidden);
    const std::string name = stack.name + ".embedding";
    if (!stack.is_decoder)
      return network_.embedding(name, {words}, stream);
    const std::int64_t elements = stream.activation.elements;
    builder_.add_layer({.name = name,
                        .forward_elements = 2 * elements,
                        .backward_elements = 2 * elements,
                        .backward_kernels = 2},
                       {});
    return stream;
  }

  // What the blocks read, and what distances add to the scores of all blocks.
  Tokens write_inputs(const Stack& stack) {
    const Tokens stream = write_words(stack);
    network_.embedding(stack.name + ".positions",
                       {stack.part(0, 0) + "SelfAttention.relative_attention_bias.weight"},
                       network_.tokens(stack.length, stack.length * sizes_.heads));
    return network_.dropout(stack.name + ".embedding.dropout", stream);
  }

  // `read`: what a decoder looks at; null in an encoder.
  Tokens write_stack(const Stack& stack, const Tokens* read) {
    Tokens stream = write_inputs(stack);
    for (std::int64_t block = 0; block < stack.layers; ++block) {
      builder_.begin_block();
      stream = attend(stack.part(block, 0), "SelfAttention", stream, nullptr, stack.is_decoder);
      if (read != nullptr)
        stream = attend(stack.part(block, 1), "EncDecAttention", stream, read, false);
      stream = feed_forward(stack.part(block, stack.is_decoder ? 2 : 1), stream);
      builder_.end_block();
    }
    stream = network_.norm(stack.name + ".final_layer_norm", stream, NormKind::rms);
    return network_.dropout(stack.name + ".dropout", stream);
  }

  Tokens linear(const std::string& name, const Tokens& input, std::int64_t outputs) {
    return network_.linear({.name = name, .outputs = outputs}, input);
  }

  Tokens attend(const std::string& prefix, const char* kind, const Tokens& stream, const Tokens* read,
                bool is_causal) {
    const std::string name = prefix + kind;
    const Tokens normed = network_.norm(prefix + "layer_norm", stream, NormKind::rms);
    const Tokens& source = read == nullptr ? normed : *read;
    const Tokens query = linear(name + ".q", normed, sizes_.width);
    const Tokens key = linear(name + ".k", source, sizes_.width);
    const Tokens value = linear(name + ".v", source, sizes_.width);
    const Tokens output = network_.attention({.name = name,
                                              .width = sizes_.width,
                                              .kv_width = sizes_.width,
                                              .heads = sizes_.heads,
                                              .is_fused = false,
                                              .has_dropout = true,
                                              .is_causal = is_causal,
                                              .key_count = source.count},
                                             {query, key, value});
    return network_.residual(prefix + "residual", linear(name + ".o", output, sizes_.hidden), stream, true);
  }

  Tokens feed_forward(const std::string& prefix, const Tokens& stream) {
    const std::string name = prefix + "DenseReluDense.";
    const Tokens normed = network_.norm(prefix + "layer_norm", stream, NormKind::rms);
    const Tokens activated =
        network_.dropout(name + "dropout", sizes_.is_gated ? gated(name, normed) : plain(name, normed));
    return network_.residual(prefix + "residual", linear(name + "wo", activated, sizes_.hidden), stream,
                             true);
  }

  Tokens plain(const std::string& name, const Tokens& input) {
    return network_.activation(name + "activation", linear(name + "wi", input, sizes_.ffn),
                               TensorSplit::replicated);
  }

  Tokens gated(const std::string& name, const Tokens& input) {
    const Tokens gate = linear(name + "wi_0", input, sizes_.ffn);
    return network_.gated_activation(name + "activation", {gate, linear(name + "wi_1", input, sizes_.ffn)},
                                     sizes_.ffn);
  }

  void write_head(const Tokens& written) {
    const bool ties = sizes_.ties_embedding;
    const Tokens logits = network_.linear({.name = "lm_head",
                                           .outputs = sizes_.vocabulary,
                                           .weight = ties ? words : "lm_head.weight",
                                           .completes_weight = !ties},
                                          written);
    network_.cross_entropy("loss", logits);
  }

  inline static const std::string words = "shared.weight";

  const EncoderDecoderSizes sizes_;
  const Stack encoder_{.name = "encoder", .layers = sizes_.layers, .length = sizes_.length};
  const Stack decoder_{.name = "decoder",
                       .layers = sizes_.decoder_layers,
                       .length = sizes_.decoder_length,
                       .is_decoder = true};
  ModelBuilder builder_;
  TokenNetwork network_{builder_};
};

Model build_encoder_decoder(JsonReader& json, const ModelRequest& request) {
  return EncoderDecoderWriter(read_sizes(json, request)).write();
}

const Registration<ModelFamily> encoder_decoder_registration{
    "encoder_decoder",
    ModelFamily{.build = build_encoder_decoder, .description = "T5 and its relatives by their sizes"}};

}  // namespace

}  // namespace lockstep
