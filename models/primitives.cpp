#include "models/primitives.h"

namespace lockstep {
namespace {

// What a kernel passes over, in times of the operator's elements: all it reads and what it writes.
constexpr std::int64_t reduce = 1;  // n read, a number a row written
constexpr std::int64_t unary = 2;   // and what multiplies by a constant or by a number a row
constexpr std::int64_t spread = 1;  // a number a row written along it
constexpr std::int64_t binary = 3;
constexpr std::int64_t ternary = 4;  // the sum of three gradients

}  // namespace

// mean, squared difference, mean; epsilon, root, times gamma (as wide as the input from here on); x * inverse,
// mean * inverse, beta - that, their sum. Backward: beta's sum and a negation; mean * inverse and x * inverse give two
// gradients each, two of which are of the inverse and are added; gamma's and the root's are products, summed along
// columns and rows; through the variance (spread, divided) to the squared difference (difference, doubled, times the
// gradient) and its mean; through the mean (spread, divided); the three gradients of x are added.
Composition layer_norm_of_primitives(std::int64_t elements) {
  constexpr std::int64_t moments = reduce + unary + reduce;
  constexpr std::int64_t normalisation = spread + binary + unary + unary + binary;
  constexpr std::int64_t of_shift = reduce + unary;
  constexpr std::int64_t of_products = (unary + unary + reduce) + (binary + binary) + binary;
  constexpr std::int64_t of_inverse = 2 * (unary + reduce);
  constexpr std::int64_t of_variance = spread + unary + unary + unary + binary + reduce;
  constexpr std::int64_t of_mean = spread + unary + ternary;
  return {.forward = {.elements = (moments + normalisation) * elements, .kernels = 10},
          .backward = {.elements = (of_shift + of_products + of_inverse + of_variance + of_mean) * elements,
                       .kernels = 26},
          .kept_elements = elements};
}

// Cast to fp32; square, mean, epsilon, root, x * root; cast back; times the weight. Backward: the weight's product, its
// sum, and the gradient of what it multiplied; cast; times the root, times x and its sum; through the root and the
// mean, spread, times 2 x; both gradients of x are added; cast back.
Composition rms_norm_of_primitives(std::int64_t elements) {
  return {
      .forward = {.elements = unary * elements,
                  .wide_elements = (unary + reduce + unary) * elements,
                  .cast_elements = 2 * elements,
                  .kernels = 6,
                  .casts = 2},
      .backward = {.elements = (unary + binary + reduce) * elements,
                   .wide_elements = (unary + binary + reduce + spread + unary + unary + binary) * elements,
                   .cast_elements = 2 * elements,
                   .kernels = 12,
                   .casts = 2},
      .by = ComposedBy::operators};
}

// x / 2 (1 + tanh(c (x + a x^3))): power, times a, + x, times c, tanh, + 1, / 2, times x.
Composition gelu_of_primitives(std::int64_t elements) {
  constexpr std::int64_t forward = unary + unary + binary + unary + unary + unary + unary + binary;
  constexpr std::int64_t of_last = binary + binary;
  constexpr std::int64_t of_tanh = unary + binary + unary;
  constexpr std::int64_t of_power = unary + unary + unary + binary + ternary;
  return {.forward = {.elements = forward * elements, .kernels = 8},
          .backward = {.elements = (of_last + of_tanh + of_power) * elements, .kernels = 10},
          .kept_elements = 2 * elements};  // the power's square root's tanh, and half of one more
}

// The same formula, whose power autograd takes the gradient of as x^2, times 3, times the gradient; three gradients of
// x are added in two kernels. Kept for backward beside x: the tanh, 1 + tanh, and x / 2.
Composition gelu_new_of_operators(std::int64_t elements) {
  constexpr std::int64_t forward = unary + unary + binary + unary + unary + unary + unary + binary;
  constexpr std::int64_t of_last = binary + binary;
  constexpr std::int64_t of_tanh = binary + unary;
  constexpr std::int64_t of_power = unary + unary + unary + binary;
  constexpr std::int64_t of_half = unary;
  constexpr std::int64_t sums = binary + binary;
  return {.forward = {.elements = forward * elements, .kernels = 8},
          .backward = {.elements = (of_last + of_tanh + of_power + of_half + sums) * elements, .kernels = 11},
          .kept_elements = 3 * elements,
          .by = ComposedBy::operators};
}

// x s: sigmoid, times x. Its gradient is written by hand and takes the sigmoid again: s, 1 - s, times x, + 1, times s,
// times the gradient.
Composition silu_of_primitives(std::int64_t elements) {
  return {
      .forward = {.elements = (unary + binary) * elements, .kernels = 2},
      .backward = {.elements = (unary + unary + binary + unary + binary + binary) * elements, .kernels = 6}};
}

// h = relu6(x + 3) / 6: + 3, relu6 (a kernel, which keeps its output), times 1/6. Backward: times 1/6, relu6's.
Composition hardsigmoid_of_primitives(std::int64_t elements) {
  return {.forward = {.elements = (unary + unary + unary) * elements, .kernels = 3},
          .backward = {.elements = (unary + binary) * elements, .kernels = 2}};
}

// x h. Backward: both products, h's, and the two gradients of x are added. Kept beside x: h and relu6's output.
Composition hardswish_of_primitives(std::int64_t elements) {
  Composition composition = hardsigmoid_of_primitives(elements);
  composition.forward.elements += binary * elements;
  composition.forward.kernels += 1;
  composition.backward.elements += (binary + binary + binary) * elements;
  composition.backward.kernels += 3;
  composition.kept_elements = 2 * elements;
  return composition;
}

// Random numbers, compared with the rate, cast to the type of x; x scaled; their product.
Composition dropout_of_primitives(std::int64_t elements) {
  return {.forward = {.elements = (unary + unary + unary + binary) * elements,
                      .wide_elements = spread * elements,
                      .kernels = 5},
          .backward = {.elements = (binary + unary) * elements, .kernels = 2},
          .kept_elements = elements};
}

Composition residual_of_primitives(std::int64_t elements, bool has_dropout) {
  Composition composition = has_dropout ? dropout_of_primitives(elements) : Composition{};
  composition.forward.elements += binary * elements;
  composition.forward.kernels += 1;
  return composition;
}

// Scale, + mask, softmax (a kernel there too, which reads its rows twice). Backward: times the weights, its sum, less
// that, times the weights; scale.
Composition masked_softmax_of_primitives(std::int64_t scores) {
  return {.forward = {.elements = (unary + unary + reduce + unary) * scores, .kernels = 3},
          .backward = {.elements = (binary + reduce + unary + binary + unary) * scores, .kernels = 5}};
}

// x cos + turned(x) sin, where turned negates a half and concatenates: halves are n / 2. Backward: both products; the
// concatenation's slices, the negation; each slice is copied into zeros; the four are added.
Composition rotary_of_primitives(std::int64_t elements) {
  constexpr std::int64_t negated_half = unary / 2;
  constexpr std::int64_t concatenated = unary;
  constexpr std::int64_t slices_in_zeros = 2 * (spread + unary / 2);
  return {.forward = {.elements = (negated_half + concatenated + unary + unary + binary) * elements,
                      .kernels = 5},
          .backward = {.elements = (unary + unary + negated_half + slices_in_zeros + 2 * binary) * elements,
                       .kernels = 9},
          .by = ComposedBy::operators};
}

Composition bias_of_primitives(std::int64_t outputs) {
  return {.forward = {.elements = unary * outputs, .kernels = 1}, .backward = {}};
}

namespace {

// A router's operators by pass. All work on scores, which are small: each is counted as reading and writing them once.
Composition router_of(std::int64_t scores, int forward, int backward) {
  return {.forward = {.elements = unary * forward * scores, .kernels = forward},
          .backward = {.elements = unary * backward * scores, .kernels = backward},
          .by = ComposedBy::router};
}

// The best few: topk, softmax; zeros and scatter, of weights and, cast to int and to bool, of the map. Backward:
// through the scatter, softmax and topk (zeros and scatter).
constexpr int choice_forward = 2 + 2 + 4;
constexpr int choice_backward = 4;

// Scores again: softmax, topk, zeros, casts and scatter; tokens by expert; sum, product, sum, scale; a log's division
// and sum. Backward: ones and scale, both products and sums spread, softmax, added to the scores' gradient.
constexpr int aux_loss_forward = 6 + 1 + 4 + 2;
constexpr int aux_loss_backward = 2 + 2 + 2 + 1 + 1;

// In fp32: cast, exponential, two vectors of ones; rounds of two normalisations (product, sum, epsilon, reciprocal,
// scale), the error (difference, absolute, mean) and its comparison, read back; two products, topk. Then sigmoid, zeros,
// casts and scatter, their product. Three rounds are what takes 4,096 tokens with weights as they begin.
constexpr int sinkhorn_rounds = 3;
constexpr int sinkhorn_forward = 4 + sinkhorn_rounds * (2 * 5 + 3 + 2) + 2 + 1 + 1 + 4 + 1;
constexpr int sinkhorn_backward = 2;

}  // namespace

Composition router_of_operators(std::int64_t scores, RouterBalancing balancing) {
  if (balancing == RouterBalancing::sinkhorn)
    return router_of(scores, sinkhorn_forward, sinkhorn_backward);
  if (balancing == RouterBalancing::none)
    return router_of(scores, choice_forward, choice_backward);
  return router_of(scores, choice_forward + aux_loss_forward, choice_backward + aux_loss_backward);
}

// The experts' columns of map and weights are copied; tokens by expert, summed and read back; map cast and turned;
// places counted and picked by the map; tokens by place. Weights and map turned, weights picked by the map. Backward:
// tokens added up (zeros, index_add), weights put back (zeros, masked_scatter), turned, and put in their columns.
Composition permutation_of_operators(std::int64_t elements) {
  return {.forward = {.elements = elements, .kernels = 2 + 2 + 2 + 2 + 1 + 3},
          .backward = {.elements = elements, .kernels = 2 + 2 + 1 + 2},
          .by = ComposedBy::permutation};
}

// Zeros, scatter_add, cast; backward: cast, gather.
Composition unpermutation_of_operators(std::int64_t elements) {
  return {.forward = {.elements = elements, .kernels = 3},
          .backward = {.elements = elements, .kernels = 2},
          .by = ComposedBy::permutation};
}

}  // namespace lockstep
