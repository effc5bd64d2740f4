#pragma once

// Attention of each token to itself and the tokens before it, between GPT-2's c_attn and c_proj.
//
// Problem:   [batch * sequence, 3 * hidden] holds queries, keys and values side by side, heads inside each.
// Idea:      heads are strided views, so nothing is transposed: one batched product over all heads for each
//            sample. Softmax runs once over all samples; only its output is kept for backward.
// Cost:      the square of scores is stored (unfused, as eager attention does). Two squares of scratch are
//            enough for all layers of a model, which run one after the other; they belong to the model.

#include <cstdint>
#include <string>

#include "validate/harness/layers/leaf.h"

namespace lockstep::harness {

struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t hidden = 0;

  std::int64_t tokens() const { return batch * sequence; }
  std::int64_t head_width() const { return hidden / heads; }
  std::int64_t squares() const { return batch * heads * sequence * sequence; }
};

// Of AttentionShape::squares() elements each, of the activations' type.
struct AttentionScratch {
  Tensor scores;
  Tensor gradient;
};

class CausalSelfAttention : public Leaf {
 public:
  CausalSelfAttention(ModuleFactory& factory, const std::string& name, const AttentionShape& shape,
                      const AttentionScratch& scratch);

 private:
  Tensor compute_forward(Step& step, Tensor input) override;
  Tensor compute_backward(Step& step, Tensor output_gradient) override;

  // Heads of one sample in a tensor of `parts` times hidden columns; of the scores.
  Factor heads_of(Tensor tensor, std::int64_t sample, std::int64_t part, std::int64_t parts) const;
  Factor squares_of(Tensor tensor, std::int64_t sample) const;
  // Of all heads: [sequence, head] = [sequence, sequence] [sequence, head], and [sequence, sequence] =
  // [sequence, head] [head, sequence].
  void multiply_to_heads(Step& step, const Factor& squares, const Factor& heads, const Factor& output,
                         float scale) const;
  void multiply_to_squares(Step& step, const Factor& left, const Factor& right, const Factor& output,
                           float scale) const;

  AttentionShape shape_;
  float scale_;
  AttentionScratch scratch_;
  Buffer weights_;  // softmax's output
  Buffer output_;
  Buffer input_gradient_;
  Tensor input_;
};

}  // namespace lockstep::harness
