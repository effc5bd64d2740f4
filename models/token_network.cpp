#include "models/token_network.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace lockstep {
namespace {

// A model with mistakes is written too, before they are told: it may have more heads than width.
std::int64_t width_of_head(const Attention& attention) {
  return std::max<std::int64_t>(attention.width / attention.heads, 1);
}

}  // namespace

Tokens TokenNetwork::repeatable(const Tokens& tokens) {
  builder_.mark_repeatable(tokens.activation);
  return tokens;
}

Tokens TokenNetwork::tokens(std::int64_t count, std::int64_t width) {
  return {.activation = builder_.add_activation(count * width), .count = count, .width = width};
}

Tokens TokenNetwork::embedding(const std::string& name, const std::vector<std::string>& tables,
                               const Tokens& shape) {
  const std::int64_t elements = shape.activation.elements;
  const auto lookups = static_cast<int>(tables.size());
  Layer layer{.name = name,
              .split = TensorSplit::row,
              .forward_elements = (2 * lookups + 3 * (lookups - 1)) * elements,
              .backward_elements = 2 * lookups * elements,
              .forward_kernels = 2 * lookups - 1,
              .backward_kernels = 2 * lookups};  // clear the table's gradient, add the rows
  for (const std::string& table : tables | std::views::reverse) {
    layer.parameters.push_back(builder_.parameter(table));
    layer.gradient_elements += builder_.parameter_elements(table);
  }
  builder_.add_layer(std::move(layer), {});
  return shape;
}

std::string TokenNetwork::bias_of(const Linear& linear) const {
  const std::string bias = linear.bias.empty() ? linear.name + ".bias" : linear.bias;
  return builder_.has_parameter(bias) ? bias : "";
}

Tokens TokenNetwork::linear(const Linear& linear, const Tokens& input) {
  const std::int64_t outputs = input.count * linear.outputs;
  const Activation output =
      builder_.add_matmul({.name = linear.name,
                           .weight = linear.weight.empty() ? linear.name + ".weight" : linear.weight,
                           .bias = bias_of(linear),
                           .multiply_adds = input.width * outputs,
                           .output_elements = outputs,
                           .product = GemmShape{.m = input.count, .n = linear.outputs, .k = input.width},
                           .split = linear.split,
                           .completes_weight = linear.completes_weight},
                          input.activation);
  return {.activation = output, .count = input.count, .width = linear.outputs};
}

Tokens TokenNetwork::norm(const std::string& name, const Tokens& input, NormKind kind) {
  constexpr std::int64_t half = 2;
  constexpr std::int64_t wide = 4;
  const bool is_composed = kind == NormKind::rms;
  const std::int64_t elements = input.activation.elements;
  Layer layer{.name = name,
              .parameters = {builder_.parameter(name + ".weight")},
              .forward_elements = 2 * elements,
              .backward_elements = 5 * elements,
              .saved_elements = builder_.keep(input.activation),
              .eager_bytes = is_composed ? wide * elements : 0,
              .autocast_bytes = is_composed ? 0 : half * elements,
              .eager_forward_elements = elements,
              .eager_backward_elements = 3 * elements,
              .backward_kernels = 2};  // input; weight and bias
  if (builder_.has_parameter(name + ".bias"))
    layer.parameters.push_back(builder_.parameter(name + ".bias"));
  layer.weight_elements = layer.gradient_elements =
      input.width * static_cast<std::int64_t>(layer.parameters.size());
  builder_.add_layer(std::move(layer), {input.activation});
  const Tokens output = repeatable(tokens(input.count, input.width));
  builder_.mark_wide(output.activation);
  return output;
}

Tokens TokenNetwork::dropout(const std::string& name, const Tokens& input) {
  const std::int64_t elements = input.activation.elements;
  builder_.add_layer({.name = name,
                      .forward_elements = 2 * elements,
                      .backward_elements = 2 * elements,
                      .saved_bytes = elements,
                      .pointwise_elements = elements},
                     {input.activation});
  return tokens(input.count, input.width);
}

Tokens TokenNetwork::residual(const std::string& name, const Tokens& path, const Tokens& skip,
                              bool has_dropout) {
  const std::int64_t elements = path.activation.elements;
  const std::int64_t dropped = has_dropout ? elements : 0;
  builder_.add_layer({.name = name,
                      .forward_elements = 3 * elements + 2 * dropped,
                      .backward_elements = 2 * dropped,
                      .saved_bytes = dropped,
                      .pointwise_elements = elements,
                      .forward_kernels = has_dropout ? 2 : 1,
                      .backward_kernels = has_dropout ? 1 : 0},
                     {path.activation, skip.activation});
  return tokens(path.count, path.width);
}

Tokens TokenNetwork::activation(const std::string& name, const Tokens& input, TensorSplit split) {
  const std::int64_t elements = input.activation.elements;
  builder_.add_layer({.name = name,
                      .split = split,
                      .forward_elements = 2 * elements,
                      .backward_elements = 3 * elements,
                      .saved_elements = builder_.keep(input.activation),
                      .gelu_elements = elements,
                      .pointwise_elements = elements},
                     {input.activation});
  return repeatable(tokens(input.count, input.width));
}

Tokens TokenNetwork::gated_activation(const std::string& name, const Tokens& gate, const Tokens& up) {
  const std::int64_t elements = gate.activation.elements;
  const Tokens activated = repeatable(tokens(gate.count, gate.width));
  const std::int64_t kept = keep_all({gate.activation, up.activation, activated.activation});
  builder_.add_layer({.name = name,
                      .split = TensorSplit::local,
                      .forward_elements = 5 * elements,
                      .backward_elements = 9 * elements,
                      .saved_elements = kept,
                      .pointwise_elements = elements,
                      .forward_kernels = 2,
                      .backward_kernels = 3},
                     {gate.activation, up.activation});
  return repeatable(tokens(gate.count, gate.width));
}

Tokens TokenNetwork::rotary_embedding(const std::string& name, const Tokens& input) {
  const std::int64_t elements = input.activation.elements;
  builder_.add_layer({.name = name,
                      .split = TensorSplit::local,
                      .forward_elements = 2 * elements,
                      .backward_elements = 2 * elements,
                      .pointwise_elements = elements},
                     {input.activation});
  return tokens(input.count, input.width);
}

std::int64_t TokenNetwork::keep_all(const std::vector<Activation>& activations) {
  std::int64_t kept = 0;
  for (const Activation& activation : activations) kept += builder_.keep(activation);
  return kept;
}

Tokens TokenNetwork::attention(const Attention& attention, const std::vector<Tokens>& inputs) {
  std::vector<Activation> activations;
  for (const Tokens& input : inputs) activations.push_back(input.activation);
  const std::int64_t count = inputs.front().count;
  if (!attention.is_fused)
    return unfused_attention(attention, activations, count);

  Layer layer = fused_attention(attention, count);
  layer.saved_elements = keep_all(activations);
  builder_.add_layer(std::move(layer), activations);
  return tokens(count, attention.width);
}

// Backward computes the scores again: five products where forward has two. Forward leaves it the logarithm of
// each row's sum, in fp32.
Layer TokenNetwork::fused_attention(const Attention& attention, std::int64_t count) const {
  constexpr std::int64_t row_sum_bytes = 4;
  const std::int64_t product = 2 * count * count * attention.width;
  const std::int64_t queries = count * attention.width;
  const std::int64_t keys = count * attention.kv_width;
  const std::int64_t width = width_of_head(attention);
  return {.name = attention.name,
          .kind = LayerKind::attention,
          .split = TensorSplit::local,
          .forward_flops = 2 * product,
          .backward_input_flops = 5 * product,
          .forward_elements = 2 * queries + 2 * keys,
          .backward_elements = 4 * queries + 4 * keys,
          .saved_bytes = row_sum_bytes * attention.heads * count,
          .product = AttentionShape{.sequence = count,
                                    .heads = attention.heads,
                                    .kv_heads = std::max<std::int64_t>(attention.kv_width / width, 1),
                                    .query_width = width,
                                    .value_width = width,
                                    .is_causal = attention.is_causal},
          .backward_kernels = 3};  // row sums, the products, conversion of the query gradient
}

// Between token by token, as linear layers have it, and head by head, as products in batches do: a copy each
// way.
Activation TokenNetwork::rearranged(const std::string& name, const std::vector<Activation>& inputs) {
  std::int64_t elements = 0;
  for (const Activation& input : inputs) elements += input.elements;
  builder_.add_layer({.name = name,
                      .split = TensorSplit::local,
                      .forward_elements = 2 * elements,
                      .backward_elements = 2 * elements,
                      .pointwise_elements = elements,
                      .forward_kernels = static_cast<int>(inputs.size()),
                      .backward_kernels = static_cast<int>(inputs.size())},
                     inputs);
  return builder_.add_activation(elements);
}

Tokens TokenNetwork::unfused_attention(const Attention& attention, const std::vector<Activation>& inputs,
                                       std::int64_t count) {
  const std::int64_t product = 2 * count * count * attention.width;
  const std::int64_t operands = count * (attention.width + attention.kv_width);
  const std::int64_t square = attention.heads * count * count;
  const Tokens scores = tokens(count, attention.heads * count);
  const std::int64_t width = width_of_head(attention);
  const Layer multiply{.name = attention.name,
                       .kind = LayerKind::attention,
                       .split = TensorSplit::local,
                       .forward_flops = product,
                       .backward_input_flops = 2 * product,
                       .forward_elements = operands + square,
                       .backward_elements = 2 * (operands + square),
                       .product = GemmShape{.batch = attention.heads, .m = count, .n = count, .k = width},
                       .backward_kernels = 2};

  Layer queries_times_keys = multiply;
  queries_times_keys.name += ".scores";
  const Activation heads = rearranged(attention.name + ".heads", inputs);
  queries_times_keys.saved_elements = builder_.keep(heads);
  builder_.add_layer(std::move(queries_times_keys), {heads});

  const Tokens weights = masked_softmax(attention, scores);
  Layer weights_times_values = multiply;
  weights_times_values.product = GemmShape{.batch = attention.heads, .m = count, .n = width, .k = count};
  weights_times_values.name += ".values";
  weights_times_values.autocast_bytes = builder_.cast_again(weights.activation);
  weights_times_values.saved_elements = builder_.keep(weights.activation);
  builder_.add_layer(std::move(weights_times_values), {weights.activation});
  const Tokens output = tokens(count, attention.width);
  return {.activation = rearranged(attention.name + ".merged", {output.activation}),
          .count = count,
          .width = attention.width};
}

// Scale, mask and softmax (and dropout), each a kernel of its own.
Tokens TokenNetwork::masked_softmax(const Attention& attention, const Tokens& scores) {
  constexpr std::int64_t half = 2;
  const std::int64_t square = scores.activation.elements;
  const Tokens weights = tokens(scores.count, scores.width);
  builder_.mark_wide(weights.activation);
  builder_.add_layer({.name = attention.name + ".softmax",
                      .split = TensorSplit::local,
                      .forward_elements = 6 * square,
                      .backward_elements = 7 * square,
                      .saved_elements = builder_.keep(weights.activation),
                      .autocast_bytes = half * square,
                      .softmax_elements = square,
                      .pointwise_elements = square,
                      .eager_forward_elements = square,
                      .eager_backward_elements = square,
                      .forward_kernels = 3,
                      .backward_kernels = 3},
                     {scores.activation});
  if (!attention.has_dropout)
    return weights;

  builder_.add_layer({.name = attention.name + ".dropout",
                      .split = TensorSplit::local,
                      .forward_elements = 2 * square,
                      .backward_elements = 2 * square,
                      .saved_bytes = square,
                      .pointwise_elements = square},
                     {weights.activation});
  return repeatable(tokens(scores.count, scores.width));
}

void TokenNetwork::cross_entropy(const std::string& name, const Tokens& logits) {
  builder_.add_cross_entropy(name, logits.activation, TensorSplit::local);
}

}  // namespace lockstep
