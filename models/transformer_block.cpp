#include "models/transformer_block.h"

#include <vector>

namespace lockstep {

namespace {

// The prefix ends in the separator before "weight".
void register_weights(ModelBuilder& builder, const BlockStyle& style, const std::string& prefix,
                      std::int64_t inputs, std::int64_t outputs) {
  builder.add_parameter(prefix + "weight", style.stores_transposed ? std::vector{inputs, outputs}
                                                                   : std::vector{outputs, inputs});
  if (style.has_biases)
    builder.add_parameter(prefix + "bias", {outputs});
}

void register_attention(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                        const std::string& prefix) {
  const BlockNames& names = style.names;
  if (style.is_joined()) {
    register_weights(builder, style, prefix + names.query_key_value + style.joined_separator, sizes.hidden,
                     sizes.hidden + 2 * sizes.kv_width());
  } else {
    register_linear(builder, style, prefix + names.query, sizes.hidden, sizes.hidden);
    register_linear(builder, style, prefix + names.key, sizes.hidden, sizes.kv_width());
    register_linear(builder, style, prefix + names.value, sizes.hidden, sizes.kv_width());
  }
  register_linear(builder, style, prefix + names.projection, sizes.hidden, sizes.hidden);
}

void register_ffn(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                  const std::string& prefix) {
  if (style.is_gated())
    register_linear(builder, style, prefix + style.names.gate, sizes.hidden, sizes.ffn);
  register_linear(builder, style, prefix + style.names.up, sizes.hidden, sizes.ffn);
  register_linear(builder, style, prefix + style.names.down, sizes.ffn, sizes.hidden);
}

// Writes the block's layers; every name it is given stands below the block's.
class BlockWriter {
 public:
  BlockWriter(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
              std::string prefix)
      : network_(builder), style_(style), sizes_(sizes), prefix_(std::move(prefix)) {}

  Tokens attend(const Tokens& input) {
    const Tokens output = network_.attention({.name = prefix_ + "attention",
                                              .width = sizes_.hidden,
                                              .kv_width = sizes_.kv_width(),
                                              .heads = sizes_.heads,
                                              .is_fused = sizes_.fused_attention,
                                              .has_dropout = style_.has_dropout,
                                              .is_causal = sizes_.causal},
                                             style_.is_joined() ? joined_inputs(input) : apart_inputs(input));
    return linear(style_.names.projection, output, sizes_.hidden, TensorSplit::row);
  }

  Tokens feed_forward(const Tokens& input) {
    return linear(style_.names.down, style_.is_gated() ? gated(input) : plain(input), sizes_.hidden,
                  TensorSplit::row);
  }

  Tokens add(const std::string& name, const Tokens& path, const Tokens& skip) {
    return network_.residual(prefix_ + name, path, skip, style_.has_dropout);
  }

  Tokens norm(const std::string& name, const Tokens& input) {
    return network_.norm(prefix_ + name, input, style_.norm);
  }

 private:
  Tokens linear(const std::string& name, const Tokens& input, std::int64_t outputs, TensorSplit split) {
    return network_.linear({.name = prefix_ + name, .outputs = outputs, .split = split}, input);
  }

  std::vector<Tokens> joined_inputs(const Tokens& input) {
    const std::string name = prefix_ + style_.names.query_key_value;
    return {network_.linear({.name = name,
                             .outputs = sizes_.hidden + 2 * sizes_.kv_width(),
                             .split = TensorSplit::column,
                             .weight = name + style_.joined_separator + "weight",
                             .bias = name + style_.joined_separator + "bias"},
                            input)};
  }

  std::vector<Tokens> apart_inputs(const Tokens& input) {
    Tokens query = linear(style_.names.query, input, sizes_.hidden, TensorSplit::column);
    Tokens key = linear(style_.names.key, input, sizes_.kv_width(), TensorSplit::column);
    const Tokens value = linear(style_.names.value, input, sizes_.kv_width(), TensorSplit::column);
    if (style_.is_rotary) {
      query = network_.rotary_embedding(prefix_ + "rotary_query", query);
      key = network_.rotary_embedding(prefix_ + "rotary_key", key);
    }
    return {query, key, value};
  }

  Tokens plain(const Tokens& input) {
    const Tokens up = linear(style_.names.up, input, sizes_.ffn, TensorSplit::column);
    return network_.activation(prefix_ + "activation", up, TensorSplit::local);
  }

  Tokens gated(const Tokens& input) {
    const Tokens gate = linear(style_.names.gate, input, sizes_.ffn, TensorSplit::column);
    const Tokens up = linear(style_.names.up, input, sizes_.ffn, TensorSplit::column);
    return network_.gated_activation(prefix_ + "activation", gate, up);
  }

  TokenNetwork network_;
  const BlockStyle& style_;
  const TransformerSizes& sizes_;
  std::string prefix_;
};

Tokens write_pre_norm(BlockWriter& block, const BlockNames& names, const Tokens& input) {
  const Tokens attended = block.add("residual_1", block.attend(block.norm(names.norm_1, input)), input);
  return block.add("residual_2", block.feed_forward(block.norm(names.norm_2, attended)), attended);
}

Tokens write_post_norm(BlockWriter& block, const BlockNames& names, const Tokens& input) {
  const Tokens attended = block.norm(names.norm_1, block.add("residual_1", block.attend(input), input));
  return block.norm(names.norm_2, block.add("residual_2", block.feed_forward(attended), attended));
}

}  // namespace

void register_linear(ModelBuilder& builder, const BlockStyle& style, const std::string& name,
                     std::int64_t inputs, std::int64_t outputs) {
  register_weights(builder, style, name + ".", inputs, outputs);
}

void register_norm(ModelBuilder& builder, const BlockStyle& style, const std::string& name,
                   std::int64_t width) {
  builder.add_parameter(name + ".weight", {width});
  if (style.has_biases)
    builder.add_parameter(name + ".bias", {width});
}

void register_block(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                    const std::string& name) {
  const std::string prefix = name + ".";
  const auto norm = [&](const std::string& part) {
    register_norm(builder, style, prefix + part, sizes.hidden);
  };
  if (style.order == BlockOrder::norm_before_part)
    norm(style.names.norm_1);
  register_attention(builder, style, sizes, prefix);
  if (style.order == BlockOrder::norm_before_part)
    norm(style.names.norm_2);
  if (style.order == BlockOrder::norm_after_part)
    norm(style.names.norm_1);
  register_ffn(builder, style, sizes, prefix);
  if (style.order == BlockOrder::norms_last)
    norm(style.names.norm_1);
  if (style.order != BlockOrder::norm_before_part)
    norm(style.names.norm_2);
}

Tokens write_block(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                   const std::string& name, const Tokens& input) {
  BlockWriter block(builder, style, sizes, name + ".");
  builder.begin_block();
  const Tokens output = style.is_post_norm ? write_post_norm(block, style.names, input)
                                           : write_pre_norm(block, style.names, input);
  builder.end_block();
  return output;
}

}  // namespace lockstep
