#pragma once

// Functions of one element.
//
// Idea:      backward needs only what forward had in hand: ReLU keeps its output, GELU its input.
// Cost:      one pass over memory each way, two tensors read and one written in backward.

#include <cstdint>
#include <string>

#include "validate/harness/layers/leaf.h"

namespace lockstep::harness {

class Relu : public Leaf {
 public:
  Relu(ModuleFactory& factory, const std::string& name, std::int64_t elements);

 private:
  Tensor compute_forward(Step& step, Tensor input) override;
  Tensor compute_backward(Step& step, Tensor output_gradient) override;

  Buffer output_;
  Buffer input_gradient_;
};

// The tanh form, as GPT-2 has it.
class Gelu : public Leaf {
 public:
  Gelu(ModuleFactory& factory, const std::string& name, std::int64_t elements);

 private:
  Tensor compute_forward(Step& step, Tensor input) override;
  Tensor compute_backward(Step& step, Tensor output_gradient) override;

  Buffer output_;
  Buffer input_gradient_;
  Tensor input_;
};

}  // namespace lockstep::harness
