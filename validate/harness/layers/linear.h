#pragma once

// output = input * weight + bias, over the rows of [rows, inputs].
//
// Idea:      torch.nn.Linear stores its weight as [outputs, inputs], GPT-2's Conv1D as [inputs, outputs];
//            only the products' transposition differs. A weight may be another layer's: GPT-2's output
//            projection uses the word embedding: this layer begins its gradient, the embedding completes it.
// Invariant: gradients are fp32, straight from the product, also where both factors are half.

#include <cstdint>
#include <optional>
#include <string>

#include "validate/harness/layers/leaf.h"

namespace lockstep::harness {

struct LinearOptions {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool has_bias = true;
  bool stores_transposed = false;            // [inputs, outputs]
  bool needs_input_gradient = true;          // not in the first layer of a network
  std::optional<InitialValues> weight = {};  // left out: uniform within 1 / sqrt(inputs), as torch has it
  std::optional<InitialValues> bias = {};    // likewise
  std::optional<std::uint32_t> tied_weight = {};
};

class Linear : public Leaf {
 public:
  Linear(ModuleFactory& factory, const LinearOptions& options);

 private:
  struct Parameters {
    std::uint32_t weight = 0;
    std::optional<std::uint32_t> bias = {};
    std::vector<std::uint32_t> completed = {};
  };
  static Parameters add_parameters(ModuleFactory& factory, const LinearOptions& options);
  Linear(ModuleFactory& factory, const LinearOptions& options, const Parameters& parameters);

  Tensor compute_forward(Step& step, Tensor input) override;
  Tensor compute_backward(Step& step, Tensor output_gradient) override;
  void add_weight_gradient(Step& step, Tensor output_gradient);

  std::int64_t rows_;
  std::int64_t inputs_;
  std::int64_t outputs_;
  bool stores_transposed_;
  Parameter& weight_;
  Parameter* bias_;  // null: none
  Buffer output_;
  Buffer input_gradient_;  // empty where none is needed
  Tensor input_;
};

}  // namespace lockstep::harness
