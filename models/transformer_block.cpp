#include "models/transformer_block.h"

#include <utility>
#include <vector>

#include "sim/base/units.h"

namespace lockstep {

namespace {

std::string expert_name(const std::string& prefix, const std::string& name) {
  return prefix + "experts." + name;
}

// The prefix ends in the separator before "weight".
void register_weights(ModelBuilder& builder, const BlockStyle& style, const std::string& prefix,
                      std::int64_t inputs, std::int64_t outputs, bool has_bias) {
  builder.add_parameter(prefix + "weight", style.stores_transposed ? std::vector{inputs, outputs}
                                                                   : std::vector{outputs, inputs});
  if (has_bias)
    builder.add_parameter(prefix + "bias", {outputs});
}

void register_head_norms(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                         const std::string& prefix) {
  for (const std::string& name : {style.names.query_norm, style.names.key_norm})
    register_norm(builder, style, prefix + name, sizes.width_of_head());
}

std::int64_t own_width(const TransformerSizes& sizes) {
  return sizes.width_of_head() - sizes.latent.rope_width;
}

std::int64_t value_width(const TransformerSizes& sizes) {
  return sizes.latent.kv_rank > 0 ? sizes.heads * sizes.latent.value_width : sizes.query_width();
}

// What narrows queries and keys is normed in between.
void register_latent(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                     const std::string& prefix) {
  const LatentSizes& latent = sizes.latent;
  const auto narrow = [&](const std::string& name, std::int64_t outputs, std::int64_t normed) {
    register_linear(builder, style, prefix + name, sizes.hidden, outputs);
    register_norm(builder, style, prefix + name + "_norm", normed);
  };
  if (latent.query_rank > 0)
    narrow(style.names.narrow_query, latent.query_rank, latent.query_rank);
  register_linear(builder, style, prefix + style.names.query,
                  latent.query_rank > 0 ? latent.query_rank : sizes.hidden, sizes.query_width());
  narrow(style.names.narrow_key_value, latent.kv_rank + latent.rope_width, latent.kv_rank);
  register_linear(builder, style, prefix + style.names.key_value, latent.kv_rank,
                  sizes.heads * (own_width(sizes) + latent.value_width));
}

void register_attention(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                        const std::string& prefix) {
  const BlockNames& names = style.names;
  if (sizes.latent.kv_rank > 0) {
    register_latent(builder, style, sizes, prefix);
  } else if (style.is_joined()) {
    register_weights(builder, style, prefix + names.query_key_value + style.joined_separator, sizes.hidden,
                     sizes.query_width() + 2 * sizes.kv_width(), style.has_input_biases());
  } else {
    const auto add = [&](const std::string& name, std::int64_t outputs) {
      register_weights(builder, style, prefix + name + ".", sizes.hidden, outputs, style.has_input_biases());
    };
    add(names.query, sizes.query_width());
    add(names.key, sizes.kv_width());
    add(names.value, sizes.kv_width());
  }
  register_weights(builder, style, prefix + names.projection + ".", value_width(sizes), sizes.hidden,
                   style.has_projection_bias());
  if (style.norms_heads)
    register_head_norms(builder, style, sizes, prefix);
}

void register_ffn(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                  const std::string& prefix, std::int64_t width) {
  const auto add = [&](const std::string& name, std::int64_t inputs, std::int64_t outputs) {
    register_weights(builder, style, prefix + name + ".", inputs, outputs,
                     style.has_biases || style.has_ffn_biases);
  };
  if (!style.names.gate_up.empty()) {
    add(style.names.gate_up, sizes.hidden, 2 * width);
  } else {
    if (style.is_gated())
      add(style.names.gate, sizes.hidden, width);
    add(style.names.up, sizes.hidden, width);
  }
  add(style.names.down, width, sizes.hidden);
}

// One tensor for all experts.
void register_experts(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                      const std::string& prefix) {
  const MixtureSizes& mixture = sizes.mixture;
  const auto add = [&](const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    builder.add_parameter(expert_name(prefix, name) + ".weight", {mixture.experts, outputs, inputs});
  };
  builder.add_parameter(prefix + "mlp.router.weight", {mixture.experts, sizes.hidden});
  if (!style.names.gate_up.empty()) {
    add(style.names.gate_up, 2 * mixture.ffn, sizes.hidden);
  } else {
    if (style.is_gated())
      add(style.names.gate, mixture.ffn, sizes.hidden);
    add(style.names.up, mixture.ffn, sizes.hidden);
  }
  add(style.names.down, sizes.hidden, mixture.ffn);
  if (mixture.shared_ffn > 0)
    register_ffn(builder, style, sizes, prefix + "shared_experts.", mixture.shared_ffn);
  if (style.gates_shared_expert)
    builder.add_parameter(prefix + "shared_experts.gate.weight", {1, sizes.hidden});
}

Routing routing_of(const MixtureSizes& mixture, std::int64_t tokens) {
  const std::int64_t even = tokens * mixture.experts_per_token;
  const std::int64_t percent = mixture.capacity_percent > 0 ? mixture.capacity_percent : 100;
  return {.experts = mixture.experts,
          .experts_per_token = mixture.experts_per_token,
          .rows_of_expert = divided_up(even * percent, mixture.experts * 100),
          .balancing = mixture.balancing};
}

// Writes the block's layers; every name it is given stands below the block's.
class BlockWriter {
 public:
  BlockWriter(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
              std::string prefix)
      : network_(builder), style_(style), sizes_(sizes), prefix_(std::move(prefix)) {}

  Tokens attend(const Tokens& input) {
    const Tokens output = network_.attention({.name = prefix_ + "attention",
                                              .width = sizes_.query_width(),
                                              .kv_width = sizes_.kv_width(),
                                              .heads = sizes_.heads,
                                              .value_width = is_latent() ? value_width(sizes_) : 0,
                                              .is_fused = sizes_.fused_attention,
                                              .has_dropout = style_.has_dropout,
                                              .is_causal = sizes_.causal,
                                              .has_mask = style_.has_mask},
                                             attention_inputs(input));
    return linear(style_.names.projection, output, sizes_.hidden, TensorSplit::row);
  }

  Tokens feed_forward(const Tokens& input) {
    return sizes_.mixture.experts > 0 ? mixture(input) : dense(input, "", sizes_.ffn);
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

  bool is_latent() const { return sizes_.latent.kv_rank > 0; }

  std::vector<Tokens> attention_inputs(const Tokens& input) {
    if (is_latent())
      return latent_inputs(input);
    return style_.is_joined() ? joined_inputs(input) : apart_inputs(input);
  }

  std::vector<Tokens> joined_inputs(const Tokens& input) {
    const std::string name = prefix_ + style_.names.query_key_value;
    const Tokens joined = network_.linear({.name = name,
                                           .outputs = sizes_.query_width() + 2 * sizes_.kv_width(),
                                           .split = TensorSplit::column,
                                           .weight = name + style_.joined_separator + "weight",
                                           .bias = name + style_.joined_separator + "bias"},
                                          input);
    if (!style_.is_rotary && !style_.norms_heads)
      return {joined};
    const auto [query, key] =
        turned(network_.columns(joined, sizes_.query_width()), network_.columns(joined, sizes_.kv_width()));
    return {query, key, network_.columns(joined, sizes_.kv_width())};
  }

  std::vector<Tokens> apart_inputs(const Tokens& input) {
    const Tokens query = linear(style_.names.query, input, sizes_.query_width(), TensorSplit::column);
    const Tokens key = linear(style_.names.key, input, sizes_.kv_width(), TensorSplit::column);
    const Tokens value = linear(style_.names.value, input, sizes_.kv_width(), TensorSplit::column);
    const auto [turned_query, turned_key] = turned(query, key);
    return {turned_query, turned_key, value};
  }

  // Normed head by head, and turned by its place, where the style does.
  std::pair<Tokens, Tokens> turned(Tokens query, Tokens key) {
    if (style_.norms_heads) {
      query = network_.head_norm(prefix_ + style_.names.query_norm, query, style_.norm);
      key = network_.head_norm(prefix_ + style_.names.key_norm, key, style_.norm);
    }
    if (style_.is_rotary) {
      query = network_.rotary_embedding(prefix_ + "rotary_query", query);
      key = network_.rotary_embedding(prefix_ + "rotary_key", key);
    }
    return {query, key};
  }

  // Both are narrowed before either is widened: what is narrow is of all heads.
  std::vector<Tokens> latent_inputs(const Tokens& input) {
    const LatentSizes& latent = sizes_.latent;
    const Tokens narrow_query =
        latent.query_rank > 0 ? narrowed(style_.names.narrow_query, input, latent.query_rank, 0) : input;
    const Tokens narrow_key =
        narrowed(style_.names.narrow_key_value, input, latent.kv_rank, latent.rope_width);
    const Tokens query = linear(style_.names.query, narrow_query, sizes_.query_width(), TensorSplit::column);
    const std::int64_t own = sizes_.heads * own_width(sizes_);
    const Tokens joined =
        linear(style_.names.key_value, narrow_key, own + value_width(sizes_), TensorSplit::column);
    const Tokens turned_query = network_.rotary_embedding(prefix_ + "rotary_query", query);
    const Tokens keys = network_.shared_keys(prefix_ + "rotary_key", network_.columns(joined, own),
                                             latent.rope_width, sizes_.query_width());
    return {turned_query, keys, network_.columns(joined, value_width(sizes_))};
  }

  // `beside` goes on as it is.
  Tokens narrowed(const std::string& name, const Tokens& input, std::int64_t rank, std::int64_t beside) {
    const Tokens narrow = linear(name, input, rank + beside, TensorSplit::replicated);
    return norm(name + "_norm", network_.columns(narrow, rank));
  }

  // `part` stands below the block's name and ends in a point, or is empty.
  Tokens dense(const Tokens& input, const std::string& part, std::int64_t width) {
    const BlockNames& names = style_.names;
    const auto column = [&](const std::string& name, std::int64_t outputs) {
      return linear(part + name, input, outputs, TensorSplit::column);
    };
    const std::string activation = prefix_ + part + "activation";
    const auto activated = [&] {
      if (!names.gate_up.empty())
        return network_.gated_activation(activation, {column(names.gate_up, 2 * width)}, width);
      if (!style_.is_gated() && style_.composes_gelu)
        return network_.gelu_new(activation, column(names.up, width), TensorSplit::local);
      if (!style_.is_gated())
        return network_.activation(activation, column(names.up, width), TensorSplit::local);
      const Tokens gate = column(names.gate, width);
      return network_.gated_activation(activation, {gate, column(names.up, width)}, width);
    };
    return linear(part + names.down, activated(), sizes_.hidden, TensorSplit::row);
  }

  // The experts that every token visits come last: their sum is added to the others'.
  Tokens mixture(const Tokens& input) {
    const MixtureSizes& mixture = sizes_.mixture;
    const Routing routing = routing_of(mixture, input.count);
    const Tokens scores = linear("mlp.router", input, mixture.experts, TensorSplit::replicated);
    network_.choose_experts(prefix_ + "mlp.choice", scores, routing);
    const Tokens sorted = network_.sort_by_expert(prefix_ + "mlp.sort", input, routing);
    const Tokens sums = network_.add_copies(prefix_ + "mlp.sum", visit_experts(sorted, routing), input);
    if (mixture.shared_ffn == 0)
      return sums;
    Tokens shared = dense(input, "shared_experts.", mixture.shared_ffn);
    if (style_.gates_shared_expert) {
      const Tokens gate = linear("shared_experts.gate", input, 1, TensorSplit::replicated);
      shared = network_.gated_by_token(prefix_ + "shared_experts.gating", shared, gate);
    }
    return network_.residual(prefix_ + "shared_experts.sum", shared, sums, false);
  }

  Tokens visit_experts(const Tokens& sorted, const Routing& routing) {
    const BlockNames& names = style_.names;
    const std::int64_t width = sizes_.mixture.ffn;
    const auto visit = [&](const std::string& name, const Tokens& input, std::int64_t outputs,
                           TensorSplit split) {
      return network_.expert_linear({.name = expert_name(prefix_, name), .outputs = outputs, .split = split},
                                    input, routing);
    };
    std::vector<Tokens> inner;
    if (!names.gate_up.empty()) {
      inner.push_back(visit(names.gate_up, sorted, 2 * width, TensorSplit::column));
    } else {
      if (style_.is_gated())
        inner.push_back(visit(names.gate, sorted, width, TensorSplit::column));
      inner.push_back(visit(names.up, sorted, width, TensorSplit::column));
    }
    const std::string activation = expert_name(prefix_, "activation");
    const Tokens activated = style_.is_gated()
                                 ? network_.gated_expert_activation(activation, inner, width, routing)
                                 : network_.expert_activation(activation, inner.front(), routing);
    return visit(names.down, activated, sizes_.hidden, TensorSplit::row);
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

Tokens write_norms_around(BlockWriter& block, const BlockNames& names, const Tokens& input) {
  const Tokens attention = block.attend(block.norm(names.norm_1, input));
  const Tokens attended = block.add("residual_1", block.norm(names.output_norm_1, attention), input);
  const Tokens fed = block.feed_forward(block.norm(names.norm_2, attended));
  return block.add("residual_2", block.norm(names.output_norm_2, fed), attended);
}

Tokens write_parallel(BlockWriter& block, const BlockNames& names, const Tokens& input) {
  const Tokens attention = block.attend(block.norm(names.norm_1, input));
  const Tokens fed = block.feed_forward(block.norm(names.norm_2, input));
  return block.add("residual_2", fed, block.add("residual_1", attention, input));
}

Tokens write_post_norm(BlockWriter& block, const BlockNames& names, const Tokens& input) {
  const Tokens attended = block.norm(names.norm_1, block.add("residual_1", block.attend(input), input));
  return block.norm(names.norm_2, block.add("residual_2", block.feed_forward(attended), attended));
}

}  // namespace

void register_linear(ModelBuilder& builder, const BlockStyle& style, const std::string& name,
                     std::int64_t inputs, std::int64_t outputs) {
  register_weights(builder, style, name + ".", inputs, outputs, style.has_biases);
}

void register_norm(ModelBuilder& builder, const BlockStyle& style, const std::string& name,
                   std::int64_t width) {
  builder.add_parameter(name + ".weight", {width});
  if (style.has_biases)
    builder.add_parameter(name + ".bias", {width});
}

Tokens write_linear(ModelBuilder& builder, const std::string& name, const Tokens& input,
                    std::int64_t outputs) {
  register_linear(builder, {}, name, input.width, outputs);
  return TokenNetwork(builder).linear({.name = name, .outputs = outputs}, input);
}

Tokens write_norm(ModelBuilder& builder, const std::string& name, const Tokens& input) {
  register_norm(builder, {}, name, input.width);
  return TokenNetwork(builder).norm(name, input);
}

void register_block(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                    const std::string& name) {
  const std::string prefix = name + ".";
  const auto norm = [&](const std::string& part) {
    register_norm(builder, style, prefix + part, sizes.hidden);
  };
  if (style.order == BlockOrder::norm_before_part || style.order == BlockOrder::norms_first)
    norm(style.names.norm_1);
  if (style.order == BlockOrder::norms_first)
    norm(style.names.norm_2);
  register_attention(builder, style, sizes, prefix);
  if (style.order == BlockOrder::norm_before_part)
    norm(style.names.norm_2);
  if (style.order == BlockOrder::norm_after_part)
    norm(style.names.norm_1);
  if (sizes.mixture.experts > 0)
    register_experts(builder, style, sizes, prefix);
  else
    register_ffn(builder, style, sizes, prefix, sizes.ffn);
  if (style.order == BlockOrder::norms_last)
    norm(style.names.norm_1);
  if (style.norms_outputs())
    norm(style.names.output_norm_1);
  if (style.order == BlockOrder::norm_after_part || style.order == BlockOrder::norms_last)
    norm(style.names.norm_2);
  if (style.norms_outputs())
    norm(style.names.output_norm_2);
}

Tokens write_block(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                   const std::string& name, const Tokens& input) {
  BlockWriter block(builder, style, sizes, name + ".");
  builder.begin_block();
  const auto write = style.is_post_norm      ? write_post_norm
                     : style.is_parallel     ? write_parallel
                     : style.norms_outputs() ? write_norms_around
                                             : write_pre_norm;
  const Tokens output = write(block, style.names, input);
  builder.end_block();
  return output;
}

}  // namespace lockstep
