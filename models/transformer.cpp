// Any transformer by its sizes: GPT-2, GPT-NeoX, BERT, Llama, MPT and their relatives (keys: transformer_style.h).
//
// Left out on purpose: buffers (masks, position ids and rotary tables are derived, a few KiB) and the rows of
// the vocabulary that frameworks pad.

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "models/token_network.h"
#include "models/transformer_block.h"
#include "models/transformer_style.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

std::string weight_of(const std::string& name) {
  return name + ".weight";
}

class TransformerWriter {
 public:
  explicit TransformerWriter(const TransformerConfig& config)
      : config_(config), style_(config.style), sizes_(config.sizes), dense_sizes_(config.sizes) {
    dense_sizes_.mixture = {};
    if (predicts_masked_words())
      root_ = style_.names.root;
  }

  Model write() {
    register_parameters();
    Tokens stream = write_embeddings();
    for (std::int64_t index = 0; index < sizes_.layers; ++index)
      stream = write_block(builder_, style_.block, sizes_of(index), block_name(index), stream);
    write_head(stream);
    Model model = builder_.finish();
    model.tokens_per_sample = config_.sequence_length;
    model.input_bytes = 8 * config_.sequence_length * inputs_per_token();
    model.transformer = sizes_;
    return model;
  }

 private:
  std::string block_name(std::int64_t index) const {
    return fmt::format("{}{}.{}", root_, style_.names.blocks, index);
  }
  // The first layers of a mixture are dense.
  const TransformerSizes& sizes_of(std::int64_t index) const {
    return index < sizes_.mixture.dense_layers ? dense_sizes_ : sizes_;
  }
  std::string words() const { return weight_of(root_ + style_.names.words); }

  bool predicts_masked_words() const {
    return config_.objective == Objective::masked_words || config_.objective == Objective::pretraining;
  }

  // Token, and where sentences are told apart its type and whether it is padding.
  std::int64_t inputs_per_token() const { return config_.token_types > 0 ? 3 : 1; }

  void register_parameters() {
    register_embeddings();
    for (std::int64_t index = 0; index < sizes_.layers; ++index)
      register_block(builder_, style_.block, sizes_of(index), block_name(index));
    register_head();
  }

  void register_embeddings() {
    const TransformerNames& names = style_.names;
    builder_.add_parameter(words(), {sizes_.vocabulary, sizes_.hidden});
    if (config_.positions > 0)
      builder_.add_parameter(weight_of(root_ + names.positions), {config_.positions, sizes_.hidden});
    if (config_.token_types > 0)
      builder_.add_parameter(weight_of(root_ + names.token_types), {config_.token_types, sizes_.hidden});
    if (!names.embedding_norm.empty())
      register_norm(builder_, style_.block, root_ + names.embedding_norm, sizes_.hidden);
  }

  void register_head() {
    const TransformerNames& names = style_.names;
    if (config_.objective != Objective::causal_words) {
      if (config_.objective != Objective::masked_words)
        register_linear(builder_, style_.block, root_ + "pooler.dense", sizes_.hidden, sizes_.hidden);
      if (predicts_masked_words())
        register_masked_word_head();
      return;
    }
    register_norm(builder_, style_.block, names.final_norm, sizes_.hidden);
    if (!style_.ties_embedding)
      builder_.add_parameter(weight_of(names.output), {sizes_.vocabulary, sizes_.hidden});
  }

  void register_masked_word_head() {
    const TransformerNames& names = style_.names;
    builder_.add_parameter(names.word_head + ".bias", {sizes_.vocabulary});
    register_linear(builder_, style_.block, names.word_transform, sizes_.hidden, sizes_.hidden);
    register_norm(builder_, style_.block, names.word_norm, sizes_.hidden);
    if (config_.objective == Objective::pretraining)
      register_linear(builder_, style_.block, "cls.seq_relationship", sizes_.hidden, 2);
  }

  Tokens write_embeddings() {
    const TransformerNames& names = style_.names;
    std::vector<std::string> tables = {words()};
    if (config_.token_types > 0)
      tables.push_back(weight_of(root_ + names.token_types));
    if (config_.positions > 0)
      tables.push_back(weight_of(root_ + names.positions));
    Tokens stream =
        network_.embedding("embedding", tables, network_.tokens(config_.sequence_length, sizes_.hidden));
    if (!names.embedding_norm.empty())
      stream = network_.norm(root_ + names.embedding_norm, stream, style_.block.norm);
    if (style_.block.has_dropout)
      stream = network_.dropout("embedding.dropout", stream);
    return stream;
  }

  void write_head(const Tokens& stream) {
    if (config_.objective == Objective::causal_words)
      return write_word_head(stream);
    if (config_.objective == Objective::masked_words)
      return write_masked_word_head(stream);
    const Tokens pooled = write_pooler();
    if (config_.objective == Objective::pretraining) {
      const Tokens answer = network_.linear({.name = "cls.seq_relationship", .outputs = 2}, pooled);
      write_masked_word_head(stream);
      network_.cross_entropy("next_sentence_loss", answer);
    }
  }

  void write_word_head(const Tokens& stream) {
    const Tokens normed = network_.norm(style_.names.final_norm, stream, style_.block.norm);
    const bool ties = style_.ties_embedding;
    const Tokens logits = network_.linear({.name = style_.names.output,
                                           .outputs = sizes_.vocabulary,
                                           .split = TensorSplit::column,
                                           .weight = ties ? words() : weight_of(style_.names.output),
                                           .completes_weight = !ties},
                                          normed);
    network_.cross_entropy("loss", logits);
  }

  // The first token alone.
  Tokens write_pooler() {
    const Tokens first = network_.tokens(1, sizes_.hidden);
    const Tokens pooled = network_.linear({.name = root_ + "pooler.dense", .outputs = sizes_.hidden}, first);
    return network_.activation(root_ + "pooler.activation", pooled, TensorSplit::replicated);
  }

  void write_masked_word_head(const Tokens& stream) {
    const bool predicts_all = config_.predictions == config_.sequence_length;
    const Tokens predicted = predicts_all ? stream : network_.tokens(config_.predictions, sizes_.hidden);
    const TransformerNames& names = style_.names;
    Tokens hidden = network_.linear({.name = names.word_transform, .outputs = sizes_.hidden}, predicted);
    hidden = network_.activation(names.word_head + ".transform.activation", hidden, TensorSplit::replicated);
    hidden = network_.norm(names.word_norm, hidden);
    const Tokens logits = network_.linear({.name = names.word_head + ".decoder",
                                           .outputs = sizes_.vocabulary,
                                           .split = TensorSplit::column,
                                           .weight = words(),
                                           .bias = names.word_head + ".bias",
                                           .completes_weight = false},
                                          hidden);
    network_.cross_entropy("loss", logits);
  }

  const TransformerConfig& config_;
  const TransformerStyle& style_;
  const TransformerSizes& sizes_;
  TransformerSizes dense_sizes_;
  std::string root_;
  ModelBuilder builder_;
  TokenNetwork network_{builder_};
};

Model build_transformer(JsonReader& json, const ModelRequest& request) {
  return TransformerWriter(read_transformer(json, request)).write();
}

const Registration<ModelFamily> transformer_registration{
    "transformer",
    ModelFamily{.build = build_transformer,
                .description = "language models by their sizes: GPT-2, BERT, Llama and MPT styles"}};

}  // namespace

}  // namespace lockstep
