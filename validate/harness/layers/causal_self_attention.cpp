#include "validate/harness/layers/causal_self_attention.h"

#include <cmath>

#include "sim/base/check.h"

namespace lockstep::harness {

namespace {

Factor transposed(Factor factor) {
  factor.is_transposed = true;
  return factor;
}

}  // namespace

CausalSelfAttention::CausalSelfAttention(ModuleFactory& factory, const std::string& name,
                                         const AttentionShape& shape, const AttentionScratch& scratch)
    : Leaf(factory, name, {}),
      shape_(shape),
      scale_(1 / std::sqrt(static_cast<float>(shape.head_width()))),
      scratch_(scratch),
      weights_(factory.make_activation(shape.squares())),
      output_(factory.make_activation(shape.tokens() * shape.hidden)),
      input_gradient_(factory.make_activation(3 * shape.tokens() * shape.hidden)) {
  LOCKSTEP_CHECK(scratch.scores.elements >= shape.squares() && scratch.gradient.elements >= shape.squares(),
                 "scratch holds the scores of all heads");
  factory.count_forward_flops(2 * 2.0 * static_cast<double>(shape.squares()) *
                              static_cast<double>(shape.head_width()));
}

Factor CausalSelfAttention::heads_of(Tensor tensor, std::int64_t sample, std::int64_t part,
                                     std::int64_t parts) const {
  const std::int64_t first = (sample * shape_.sequence * parts + part) * shape_.hidden;
  return {.tensor = tensor.part(first, tensor.elements - first),
          .stride = parts * shape_.hidden,
          .batch_stride = shape_.head_width()};
}

Factor CausalSelfAttention::squares_of(Tensor tensor, std::int64_t sample) const {
  const std::int64_t square = shape_.sequence * shape_.sequence;
  return {.tensor = tensor.part(sample * shape_.heads * square, shape_.heads * square),
          .batch_stride = square};
}

void CausalSelfAttention::multiply_to_heads(Step& step, const Factor& squares, const Factor& heads,
                                            const Factor& output, float scale) const {
  step.device.matmul({.a = squares,
                      .b = heads,
                      .output = output,
                      .rows = shape_.sequence,
                      .columns = shape_.head_width(),
                      .inner = shape_.sequence,
                      .batches = shape_.heads,
                      .scale = scale});
}

void CausalSelfAttention::multiply_to_squares(Step& step, const Factor& left, const Factor& right,
                                              const Factor& output, float scale) const {
  step.device.matmul({.a = left,
                      .b = transposed(right),
                      .output = output,
                      .rows = shape_.sequence,
                      .columns = shape_.sequence,
                      .inner = shape_.head_width(),
                      .batches = shape_.heads,
                      .scale = scale});
}

Tensor CausalSelfAttention::compute_forward(Step& step, Tensor input) {
  input_ = input;
  for (std::int64_t sample = 0; sample < shape_.batch; ++sample) {
    multiply_to_squares(step, heads_of(input, sample, 0, 3), heads_of(input, sample, 1, 3),
                        squares_of(scratch_.scores, sample), scale_);
  }
  const Tensor scores = scratch_.scores.part(0, shape_.squares());
  step.device.causal_softmax(weights_.tensor(), scores, shape_.sequence);
  for (std::int64_t sample = 0; sample < shape_.batch; ++sample) {
    multiply_to_heads(step, squares_of(weights_.tensor(), sample), heads_of(input, sample, 2, 3),
                      heads_of(output_.tensor(), sample, 0, 1), 1);
  }
  return output_.tensor();
}

Tensor CausalSelfAttention::compute_backward(Step& step, Tensor output_gradient) {
  const Tensor gradient = input_gradient_.tensor();
  for (std::int64_t sample = 0; sample < shape_.batch; ++sample) {
    const Factor heads = heads_of(output_gradient, sample, 0, 1);
    multiply_to_squares(step, heads, heads_of(input_, sample, 2, 3), squares_of(scratch_.gradient, sample),
                        1);
    multiply_to_heads(step, transposed(squares_of(weights_.tensor(), sample)), heads,
                      heads_of(gradient, sample, 2, 3), 1);
  }
  step.device.causal_softmax_backward(scratch_.scores.part(0, shape_.squares()),
                                      scratch_.gradient.part(0, shape_.squares()), weights_.tensor(),
                                      shape_.sequence);
  for (std::int64_t sample = 0; sample < shape_.batch; ++sample) {
    const Factor scores = squares_of(scratch_.scores, sample);
    multiply_to_heads(step, scores, heads_of(input_, sample, 1, 3), heads_of(gradient, sample, 0, 3), scale_);
    multiply_to_heads(step, transposed(scores), heads_of(input_, sample, 0, 3),
                      heads_of(gradient, sample, 1, 3), scale_);
  }
  return gradient;
}

}  // namespace lockstep::harness
