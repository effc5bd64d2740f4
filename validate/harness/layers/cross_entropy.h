#pragma once

// The loss: mean of -log softmax(logits)[target] over the rows.
//
// Idea:      the logits' gradient costs hardly more once the softmax is there, so forward computes both (one
//            pass over the logits instead of two) and backward hands it over.
// Invariant: the gradient is that of the mean times Step::loss_scale as it was in forward.

#include <cstdint>
#include <string>

#include "validate/harness/layers/leaf.h"

namespace lockstep::harness {

class CrossEntropy {
 public:
  CrossEntropy(ModuleFactory& factory, const std::string& name, std::int64_t rows, std::int64_t classes);

  void forward(Step& step, Tensor logits, Tensor targets);
  Tensor backward(Step& step);
  Tensor loss() const { return loss_.tensor(); }  // one number, fp32

 private:
  std::uint32_t layer_;
  std::int64_t classes_;
  Buffer loss_;
  Buffer logits_gradient_;
};

}  // namespace lockstep::harness
