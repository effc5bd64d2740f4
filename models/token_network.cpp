#include "models/token_network.h"

#include <algorithm>
#include <utility>

#include "models/element_bytes.h"
#include "models/primitives.h"

namespace lockstep {
namespace {

// A model with mistakes is written too, before they are told: it may have more heads than width.
std::int64_t width_of_head(const Attention& attention) {
  return std::max<std::int64_t>(attention.width / attention.heads, 1);
}

// Of all heads.
std::int64_t value_width(const Attention& attention) {
  return attention.value_width > 0 ? attention.value_width : attention.width;
}

}  // namespace

Tokens TokenNetwork::repeatable(const Tokens& tokens) {
  builder_.mark_repeatable(tokens.activation);
  return tokens;
}

Tokens TokenNetwork::tokens(std::int64_t count, std::int64_t width) {
  return {.activation = builder_.add_activation(count * width), .count = count, .width = width};
}

Tokens TokenNetwork::columns(const Tokens& whole, std::int64_t width) {
  return {.activation = builder_.add_view(whole.activation, whole.count * width),
          .count = whole.count,
          .width = width};
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
  for (auto table = tables.rbegin(); table != tables.rend(); ++table) {
    layer.parameters.push_back(builder_.parameter(*table));
    layer.gradient_elements += builder_.parameter_elements(*table);
  }
  builder_.add_layer(std::move(layer), {});
  builder_.mark_of_library(shape.activation);
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

Layer TokenNetwork::norm_layer(const std::string& name, const Activation& input, NormKind kind) {
  const std::int64_t elements = input.elements;
  Layer layer{.name = name,
              .parameters = {builder_.parameter(name + ".weight")},
              .forward_elements = 2 * elements,
              .backward_elements = 5 * elements,
              .saved_elements = builder_.keep(input),
              .eager_forward_elements = elements,
              .eager_backward_elements = 3 * elements,
              .composition = kind == NormKind::rms ? rms_norm_of_primitives(elements)
                                                   : layer_norm_of_primitives(elements),
              .autocast_forward = {.bytes = element_bytes::wider * (2 + 1) * elements},
              .autocast_backward = {.bytes = element_bytes::wider * (5 + 3) * elements},
              .backward_kernels = 2};  // input; weight and bias
  if (builder_.has_parameter(name + ".bias"))
    layer.parameters.push_back(builder_.parameter(name + ".bias"));
  layer.weight_elements = layer.gradient_elements =
      builder_.parameter_elements(name + ".weight") * static_cast<std::int64_t>(layer.parameters.size());
  return layer;
}

Tokens TokenNetwork::norm(const std::string& name, const Tokens& input, NormKind kind) {
  Layer layer = norm_layer(name, input.activation, kind);
  if (kind == NormKind::rms)
    layer.eager_bytes = element_bytes::wide * input.activation.elements;
  else
    layer.autocast_bytes = element_bytes::half * input.activation.elements;
  builder_.add_layer(std::move(layer), {input.activation});
  const Tokens output = repeatable(tokens(input.count, input.width));
  builder_.mark_wide(output.activation);
  builder_.mark_of_library(output.activation);
  return output;
}

Tokens TokenNetwork::dropout(const std::string& name, const Tokens& input) {
  const std::int64_t elements = input.activation.elements;
  builder_.add_layer({.name = name,
                      .forward_elements = 2 * elements,
                      .backward_elements = 2 * elements,
                      .saved_bytes = elements,
                      .pointwise_elements = elements,
                      .composition = dropout_of_primitives(elements)},
                     {input.activation});
  return tokens(input.count, input.width);
}

Tokens TokenNetwork::residual(const std::string& name, const Tokens& path, const Tokens& skip,
                              bool has_dropout) {
  const std::int64_t elements = path.activation.elements;
  const std::int64_t dropped = has_dropout ? elements : 0;
  builder_.add_layer({.name = name,
                      .forward_elements = 3 * elements,
                      .backward_elements = 2 * dropped,
                      .saved_bytes = dropped,
                      .pointwise_elements = elements,
                      .eager_forward_elements = 2 * dropped,
                      .eager_forward_kernels = has_dropout ? 1 : 0,
                      .composition = residual_of_primitives(elements, has_dropout),
                      // The stream is in fp32, from its embeddings on; what is added to it is not.
                      .autocast_forward = {.bytes = 2 * element_bytes::wider * elements},
                      .autocast_backward = {.bytes = element_bytes::cast * elements, .casts = 1},
                      .backward_kernels = has_dropout ? 1 : 0},
                     {path.activation, skip.activation});
  const Tokens sum = tokens(path.count, path.width);
  builder_.mark_wide(sum.activation);
  return sum;
}

Tokens TokenNetwork::activation(const std::string& name, const Tokens& input, TensorSplit split) {
  return add_activation({.name = name, .split = split}, input);
}

// Autocast takes its power in fp32, and so what follows; what stays in half precision saves the bytes that its casts
// take.
Tokens TokenNetwork::gelu_new(const std::string& name, const Tokens& input, TensorSplit split) {
  constexpr int casts_of_gradients = 3;
  const std::int64_t elements = input.activation.elements;
  builder_.add_layer({.name = name,
                      .split = split,
                      .forward_elements = 2 * elements,
                      .backward_elements = 3 * elements,
                      .saved_elements = builder_.keep(input.activation),
                      .autocast_bytes = (element_bytes::wide + element_bytes::wider) * elements,
                      .pointwise_elements = elements,
                      .composition = gelu_new_of_operators(elements),
                      .autocast_forward = {.casts = 1},
                      .autocast_backward = {.casts = casts_of_gradients}},
                     {input.activation});
  const Tokens output = repeatable(tokens(input.count, input.width));
  builder_.mark_wide(output.activation);
  return output;
}

Tokens TokenNetwork::add_activation(Layer layer, const Tokens& input) {
  const std::int64_t elements = input.activation.elements;
  layer.forward_elements = 2 * elements;
  layer.backward_elements = 3 * elements;
  layer.saved_elements = builder_.keep(input.activation);
  layer.gelu_elements = elements;
  layer.composition = gelu_of_primitives(elements);
  layer.pointwise_elements = elements;
  builder_.add_layer(std::move(layer), {input.activation});
  return repeatable(tokens(input.count, input.width));
}

Tokens TokenNetwork::gated_activation(const std::string& name, const std::vector<Tokens>& gate_and_up,
                                      std::int64_t width) {
  return add_gated_activation({.name = name}, gate_and_up, width);
}

Tokens TokenNetwork::expert_activation(const std::string& name, const Tokens& input, const Routing& routing) {
  return add_activation({.name = name, .split = TensorSplit::local, .experts = routing.experts}, input);
}

Tokens TokenNetwork::gated_expert_activation(const std::string& name, const std::vector<Tokens>& inputs,
                                             std::int64_t width, const Routing& routing) {
  return add_gated_activation({.name = name, .experts = routing.experts}, inputs, width);
}

Tokens TokenNetwork::add_gated_activation(Layer layer, const std::vector<Tokens>& inputs,
                                          std::int64_t width) {
  const std::int64_t count = inputs.front().count;
  const std::int64_t elements = count * width;
  const Tokens activated = repeatable(tokens(count, width));
  std::vector<Activation> kept;
  for (const Tokens& input : inputs) kept.push_back(input.activation);
  const std::vector<Activation> read = kept;
  kept.push_back(activated.activation);
  layer.split = TensorSplit::local;
  layer.forward_elements = (2 + 1) * elements;
  layer.backward_elements = (3 + 2) * elements;
  layer.saved_elements = keep_all(kept);
  layer.pointwise_elements = elements;
  layer.eager_forward_elements = 2 * elements;   // the activated gate
  layer.eager_backward_elements = 4 * elements;  // and its gradient; the output's again
  layer.eager_forward_kernels = 1;
  layer.eager_backward_kernels = 2;
  builder_.add_layer(std::move(layer), read);
  return repeatable(tokens(count, width));
}

// One weight for all heads: every rank that has a part of them sums its own gradient.
Tokens TokenNetwork::head_norm(const std::string& name, const Tokens& input, NormKind kind) {
  Layer layer = norm_layer(name, input.activation, kind);
  layer.split = TensorSplit::local;
  builder_.add_layer(std::move(layer), {input.activation});
  const Tokens output = tokens(input.count, input.width);
  builder_.mark_of_library(output.activation);
  return output;
}

Tokens TokenNetwork::shared_keys(const std::string& name, const Tokens& own, std::int64_t shared,
                                 std::int64_t width) {
  const std::int64_t elements = own.activation.elements + own.count * shared;
  const Tokens keys = tokens(own.count, width);
  builder_.add_layer({.name = name,
                      .split = TensorSplit::local,
                      .forward_elements = elements + keys.activation.elements,
                      .backward_elements = elements + keys.activation.elements,
                      .pointwise_elements = keys.activation.elements},
                     {own.activation});
  return keys;
}

Tokens TokenNetwork::gated_by_token(const std::string& name, const Tokens& input, const Tokens& gate) {
  const std::int64_t elements = input.activation.elements;
  builder_.add_layer({.name = name,
                      .forward_elements = 2 * elements,
                      .backward_elements = 3 * elements,
                      .saved_elements = keep_all({input.activation, gate.activation}),
                      .pointwise_elements = elements,
                      .eager_backward_elements = elements,
                      .eager_forward_kernels = 1,
                      .eager_backward_kernels = 2},
                     {input.activation, gate.activation});
  return tokens(input.count, input.width);
}

void TokenNetwork::choose_experts(const std::string& name, const Tokens& scores, const Routing& routing) {
  const std::int64_t elements = scores.activation.elements;
  const std::int64_t chosen = scores.count * routing.experts_per_token;
  builder_.add_layer({.name = name,
                      .forward_elements = 3 * elements + 2 * chosen,
                      .backward_elements = 3 * elements + 2 * chosen,
                      .saved_elements = elements + chosen,
                      .saved_bytes = 4 * chosen,  // which experts
                      .composition = router_of_operators(elements, routing.balancing),
                      .forward_kernels = 3,
                      .backward_kernels = 2},
                     {scores.activation});
}

Tokens TokenNetwork::sort_by_expert(const std::string& name, const Tokens& input, const Routing& routing) {
  const Tokens sorted = tokens(routing.rows(), input.width);
  const std::int64_t elements = input.activation.elements + sorted.activation.elements;
  builder_.add_layer({.name = name,
                      .forward_elements = elements,
                      .backward_elements = elements,
                      .saved_bytes = 4 * routing.rows(),  // where each copy came from
                      .composition = permutation_of_operators(elements),
                      .forward_kernels = 2,
                      .backward_kernels = 1},
                     {input.activation});
  return sorted;
}

Tokens TokenNetwork::expert_linear(const Linear& linear, const Tokens& input, const Routing& routing) {
  const std::int64_t outputs = input.count * linear.outputs;
  const Activation output = builder_.add_matmul(
      {.name = linear.name,
       .weight = linear.name + ".weight",
       .multiply_adds = input.width * outputs,
       .output_elements = outputs,
       .product =
           GemmShape{
               .batch = routing.experts, .m = routing.rows_of_expert, .n = linear.outputs, .k = input.width},
       .split = linear.split,
       .experts = routing.experts},
      input.activation);
  return {.activation = output, .count = input.count, .width = linear.outputs};
}

// Nothing is kept: what a token gives each expert is multiplied within the activation.
Tokens TokenNetwork::add_copies(const std::string& name, const Tokens& copies, const Tokens& shape) {
  const Tokens sums = tokens(shape.count, shape.width);
  const std::int64_t elements = copies.activation.elements + sums.activation.elements;
  builder_.add_layer({.name = name,
                      .forward_elements = elements,
                      .backward_elements = elements,
                      .composition = unpermutation_of_operators(elements)},
                     {copies.activation});
  return sums;
}

Tokens TokenNetwork::rotary_embedding(const std::string& name, const Tokens& input) {
  const std::int64_t elements = input.activation.elements;
  builder_.add_layer({.name = name,
                      .split = TensorSplit::local,
                      .forward_elements = 2 * elements,
                      .backward_elements = 2 * elements,
                      .pointwise_elements = elements,
                      .composition = rotary_of_primitives(elements),
                      .is_rotary = true},
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
  return tokens(count, value_width(attention));
}

// Backward computes the scores again, and two products of scores and two of values beside: five products
// where forward has two. Forward leaves it the logarithm of each row's sum, in fp32.
Layer TokenNetwork::fused_attention(const Attention& attention, std::int64_t count) const {
  constexpr std::int64_t row_sum_bytes = 4;
  const std::int64_t scores = 2 * count * count * attention.width;
  const std::int64_t values = 2 * count * count * value_width(attention);
  const std::int64_t queries = count * attention.width;
  const std::int64_t outputs = count * value_width(attention);
  const std::int64_t keys = count * attention.kv_width;
  const std::int64_t width = width_of_head(attention);
  const std::int64_t kv_heads = std::max<std::int64_t>(attention.kv_width / width, 1);
  const std::int64_t width_of_value = std::max<std::int64_t>(value_width(attention) / attention.heads, 1);
  const std::int64_t given = attention.value_width > 0 ? outputs : keys;
  return {.name = attention.name,
          .kind = LayerKind::attention,
          .split = TensorSplit::local,
          .forward_flops = scores + values,
          .backward_input_flops = 3 * scores + 2 * values,
          .forward_elements = queries + outputs + keys + given,
          .backward_elements = 2 * (queries + outputs + keys + given),
          .saved_bytes = row_sum_bytes * attention.heads * count,
          .product = AttentionShape{.sequence = count,
                                    .heads = attention.heads,
                                    .kv_heads = kv_heads,
                                    .query_width = width,
                                    .value_width = width_of_value,
                                    .is_causal = attention.is_causal},
          .backward_kernels = 3};  // row sums, the products, conversion of the query gradient
}

// Between token by token, as linear layers have it, and head by head, as products in batches do: a copy each way, but
// where a product may read heads where they lie.
Activation TokenNetwork::rearranged(Layer layer, const std::vector<Activation>& inputs) {
  std::int64_t elements = 0;
  for (const Activation& input : inputs) elements += input.elements;
  layer.split = TensorSplit::local;
  layer.forward_elements = layer.backward_elements = 2 * elements;
  layer.pointwise_elements = elements;
  layer.forward_kernels = layer.backward_kernels = static_cast<int>(inputs.size());
  builder_.add_layer(std::move(layer), inputs);
  return builder_.add_activation(elements);
}

Tokens TokenNetwork::unfused_attention(const Attention& attention, const std::vector<Activation>& inputs,
                                       std::int64_t count) {
  const std::int64_t keys = attention.key_count > 0 ? attention.key_count : count;
  const std::int64_t product = 2 * count * keys * attention.width;
  const std::int64_t operands = count * attention.width + keys * attention.kv_width;
  const std::int64_t square = attention.heads * count * keys;
  const Tokens scores{
      .activation = builder_.add_product(square), .count = count, .width = attention.heads * keys};
  const std::int64_t width = width_of_head(attention);
  const Layer multiply{.name = attention.name,
                       .kind = LayerKind::attention,
                       .split = TensorSplit::local,
                       .forward_flops = product,
                       .backward_input_flops = 2 * product,
                       .forward_elements = operands + square,
                       .backward_elements = 2 * (operands + square),
                       .product = GemmShape{.batch = attention.heads, .m = count, .n = keys, .k = width},
                       .backward_kernels = 2};

  Layer queries_times_keys = multiply;
  queries_times_keys.name += ".scores";
  // Gradients of what one product has made are put together in one tensor, which its backward reads.
  const Activation heads = rearranged(
      {.name = attention.name + ".heads", .is_view_forward = true, .is_view_backward = inputs.size() > 1},
      inputs);
  queries_times_keys.saved_elements = builder_.keep(heads);
  builder_.add_layer(std::move(queries_times_keys), {heads});

  const Tokens weights = masked_softmax(attention, scores);
  Layer weights_times_values = multiply;
  weights_times_values.product = GemmShape{.batch = attention.heads, .m = count, .n = width, .k = keys};
  weights_times_values.name += ".values";
  weights_times_values.autocast_bytes = builder_.cast_again(weights.activation);
  weights_times_values.autocast_forward = builder_.cast_of(weights.activation);
  weights_times_values.autocast_backward = builder_.cast_of(weights.activation);
  weights_times_values.saved_elements = builder_.keep(weights.activation);
  builder_.add_layer(std::move(weights_times_values), {weights.activation});
  const Activation output = builder_.add_product(count * attention.width);
  return {.activation = rearranged({.name = attention.name + ".merged", .is_view_backward = true}, {output}),
          .count = count,
          .width = attention.width};
}

// Scale, mask if there is one, and softmax (and dropout), each a kernel of its own where operators run; a mask has no
// backward. PyTorch multiplies the gradient by the weights in a kernel before softmax's backward, which reads that and the weights
// (aten/src/ATen/native/cuda/SoftMax.cu).
Tokens TokenNetwork::masked_softmax(const Attention& attention, const Tokens& scores) {
  const std::int64_t square = scores.activation.elements;
  const int masks = attention.has_mask ? 1 : 0;
  // A mask that is added is in fp32, as parameters are, and so is the sum; a causal one is filled in (torch.where).
  const std::int64_t half = attention.has_mask && !attention.is_causal ? 0 : square;
  const Tokens weights = tokens(scores.count, scores.width);
  builder_.mark_wide(weights.activation);
  builder_.mark_of_library(weights.activation);
  builder_.add_layer(
      {.name = attention.name + ".softmax",
       .split = TensorSplit::local,
       .forward_elements = 2 * square,
       .backward_elements = 3 * square,
       .saved_elements = builder_.keep(weights.activation),
       .autocast_bytes = element_bytes::half * square,
       .softmax_elements = square,
       .pointwise_elements = square,
       .eager_forward_elements = (2 + 2 * masks) * square,
       .eager_backward_elements = (4 + 3) * square,
       .eager_forward_kernels = 1 + masks,
       .eager_backward_kernels = 3,
       .composition = masked_softmax_of_primitives(square),
       .autocast_forward = {.bytes = (element_bytes::cast + element_bytes::wider * 2) * square,
                            .casts = 1,
                            .softmax_of_half = half},
       .autocast_backward = {.bytes = (element_bytes::cast + element_bytes::wider * (3 + 3)) * square,
                             .casts = 1,
                             .softmax_of_half = half}},
      {scores.activation});
  if (!attention.has_dropout)
    return weights;

  builder_.add_layer({.name = attention.name + ".dropout",
                      .split = TensorSplit::local,
                      .forward_elements = 2 * square,
                      .backward_elements = 2 * square,
                      .saved_bytes = square,
                      .pointwise_elements = square,
                      .composition = dropout_of_primitives(square),
                      .autocast_forward = {.bytes = 2 * element_bytes::wider * square},
                      .autocast_backward = {.bytes = 2 * element_bytes::wider * square}},
                     {weights.activation});
  const Tokens dropped = repeatable(tokens(scores.count, scores.width));
  builder_.mark_wide(dropped.activation);
  return dropped;
}

void TokenNetwork::cross_entropy(const std::string& name, const Tokens& logits) {
  builder_.add_cross_entropy(name, logits.activation, TensorSplit::local);
}

}  // namespace lockstep
