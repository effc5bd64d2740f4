#include "sim/training/layer_slice.h"

#include <algorithm>
#include <initializer_list>
#include <variant>

#include "sim/base/check.h"
#include "sim/base/units.h"

namespace lockstep {
namespace {

using arithmetic::product_divided_up;

GemmShape& gemm_of(Layer& layer) {
  LOCKSTEP_CHECK(is_linear(layer), "a layer that is cut by its sides is linear");
  return std::get<GemmShape>(*layer.product);
}

void scale(std::initializer_list<std::int64_t*> counts, std::int64_t share, std::int64_t whole) {
  for (std::int64_t* count : counts) *count = product_divided_up(*count, share, whole);
}

void scale_kept(Layer& layer, std::int64_t share, std::int64_t whole) {
  scale({&layer.saved_elements, &layer.repeatable_elements, &layer.autocast_bytes}, share, whole);
}

// Of a product: of its input.
void scale_casts(Layer& layer, std::int64_t share, std::int64_t whole) {
  scale({&layer.autocast_forward.bytes, &layer.autocast_backward.bytes,
         &layer.autocast_forward.softmax_of_half, &layer.autocast_backward.softmax_of_half},
        share, whole);
}

void scale_flops(Layer& layer, std::int64_t share, std::int64_t whole) {
  scale({&layer.forward_flops, &layer.backward_input_flops, &layer.backward_weight_flops}, share, whole);
}

void scale_composition(Layer& layer, std::int64_t share, std::int64_t whole) {
  if (!layer.composition)
    return;
  for (PrimitiveWork* work : {&layer.composition->forward, &layer.composition->backward})
    scale({&work->elements, &work->wide_elements, &work->cast_elements}, share, whole);
  scale({&layer.composition->kept_elements}, share, whole);
}

void scale_counts(Layer& layer, std::int64_t share, std::int64_t whole) {
  scale_flops(layer, share, whole);
  scale_kept(layer, share, whole);
  scale({&layer.forward_elements, &layer.backward_elements, &layer.eager_bytes, &layer.softmax_elements,
         &layer.gelu_elements, &layer.backward_pass_elements, &layer.pointwise_elements,
         &layer.eager_forward_elements, &layer.eager_backward_elements, &layer.saved_bytes},
        share, whole);
  scale_composition(layer, share, whole);
  scale_casts(layer, share, whole);
}

// How often backward passes over a linear layer's output: each product reads its gradient, and a bias sums
// it.
std::int64_t output_passes(const Layer& layer) {
  return 1 + (layer.backward_input_flops > 0 ? 1 : 0) + bias_passes(layer);
}

void set_weights(Layer& layer, std::int64_t elements) {
  layer.weight_elements = elements;
  if (layer.gradient_elements > 0)
    layer.gradient_elements = elements;
}

std::int64_t bias_elements(const Layer& layer) {
  const GemmShape& shape = std::get<GemmShape>(*layer.product);
  return layer.weight_elements - shape.batch * shape.n * shape.k;
}

}  // namespace

bool is_linear(const Layer& layer) {
  return layer.weight_elements > 0 && layer.product && std::holds_alternative<GemmShape>(*layer.product);
}

bool is_embedding(const Layer& layer) {
  return layer.split == TensorSplit::row && !layer.product;
}

LinearSides sides_of(const Layer& layer) {
  LOCKSTEP_CHECK(is_linear(layer), "only a linear layer has sides");
  return {std::get<GemmShape>(*layer.product)};
}

bool has_bias(const Layer& layer) {
  return bias_elements(layer) > 0;
}

std::int64_t bias_passes(const Layer& layer) {
  return has_bias(layer) ? 1 : 0;
}

void divide_kept(Layer& layer, std::int64_t parts) {
  scale_kept(layer, 1, parts);
}

void divide_rows(Layer& layer, std::int64_t parts) {
  scale_counts(layer, 1, parts);
  if (auto* shape = layer.product ? std::get_if<GemmShape>(&*layer.product) : nullptr)
    shape->m = divided_up(shape->m, parts);
}

void scale_rows(Layer& layer, Ratio factor) {
  scale_counts(layer, factor.parts_per_million(), Ratio::one().parts_per_million());
  if (is_linear(layer))
    gemm_of(layer).m = scaled_up(gemm_of(layer).m, factor);
}

void take_experts(Layer& layer, std::int64_t parts) {
  layer.experts = divided_up(layer.experts, parts);
  if (!is_linear(layer))
    return;
  GemmShape& shape = gemm_of(layer);
  shape.batch = divided_up(shape.batch, parts);
  shape.m *= parts;
  set_weights(layer, divided_up(layer.weight_elements, parts));
}

void take_columns(Layer& layer, std::int64_t columns) {
  GemmShape& shape = gemm_of(layer);
  const std::int64_t bias = bias_elements(layer) > 0 ? shape.batch * columns : 0;
  const std::int64_t less = shape.batch * shape.m * (shape.n - columns);
  layer.forward_elements -= less;
  layer.backward_elements -= output_passes(layer) * less;
  layer.backward_pass_elements -= bias_passes(layer) * less;
  scale_flops(layer, columns, shape.n);
  scale_composition(layer, columns, shape.n);
  shape.n = columns;
  set_weights(layer, shape.batch * shape.n * shape.k + bias);
}

void take_inputs(Layer& layer, std::int64_t width) {
  GemmShape& shape = gemm_of(layer);
  const std::int64_t bias = bias_elements(layer);
  const std::int64_t output = shape.batch * shape.m * shape.n;
  const auto of_input = [&](std::int64_t count, std::int64_t outputs) {
    return outputs * output + product_divided_up(count - outputs * output, width, shape.k);
  };
  layer.forward_elements = of_input(layer.forward_elements, 1);
  layer.backward_elements = of_input(layer.backward_elements, output_passes(layer));
  layer.backward_pass_elements = of_input(layer.backward_pass_elements, bias_passes(layer));
  scale_kept(layer, width, shape.k);
  scale_casts(layer, width, shape.k);
  scale_flops(layer, width, shape.k);
  shape.k = width;
  set_weights(layer, shape.batch * shape.n * shape.k + bias);
}

void divide_all(Layer& layer, std::int64_t parts) {
  scale_counts(layer, 1, parts);
  if (!layer.product)
    return;
  if (auto* attention = std::get_if<AttentionShape>(&*layer.product)) {
    attention->heads = divided_up(attention->heads, parts);
    attention->kv_heads = divided_up(attention->kv_heads, parts);
  } else if (auto* products = std::get_if<GemmShape>(&*layer.product)) {
    products->batch = divided_up(products->batch, parts);
  }
}

}  // namespace lockstep
