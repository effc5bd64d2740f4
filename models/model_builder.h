#pragma once

// Writes a Model: parameters by name, layers in forward order.
//
// Problem:   a tensor that two operations keep for backward is stored once, a tensor that two operations read
//            gets two gradients that must be added, and registration order need not be forward order.
// Idea:      every activation has an identity; the first layer that keeps it pays for it, every reader after
//            the first pays for adding its gradient. Layers name their parameters, wherever these stand.
// Invariant: a matmul whose input is the data computes no gradient of its input.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/model.h"

namespace lockstep {

// A tensor between two layers; its size is per sample.
struct Activation {
  std::size_t id = 0;
  std::int64_t elements = 0;
};

// A convolution or linear layer: output = weight x input (+ bias).
struct Matmul {
  std::string name;
  std::string weight;
  std::string bias = {};  // empty: none
  std::int64_t multiply_adds = 0;
  std::int64_t output_elements = 0;
  ProductShape product = GemmShape{};  // of one sample
  TensorSplit split = TensorSplit::replicated;
  bool is_linear = true;         // autograd hands a linear layer's bias over first, a convolution's last
  bool completes_weight = true;  // false: the weight is tied to a layer whose backward comes later
  std::int64_t experts = 0;      // whose products it is, of a mixture
};

class ModelBuilder {
 public:
  // fp32 data: no gradient flows into it.
  Activation add_input(std::int64_t elements);
  Activation add_activation(std::int64_t elements);
  // What a library's product makes.
  Activation add_product(std::int64_t elements);
  // Columns of another activation, which they are a view of.
  Activation add_view(const Activation& whole, std::int64_t elements);

  // Elements that backward newly keeps when it needs this activation: none if an earlier layer kept it.
  std::int64_t keep(const Activation& activation);
  // It can be computed again, place by place, from what is kept anyway.
  void mark_repeatable(const Activation& activation) { activations_[activation.id].is_repeatable = true; }
  // PyTorch's autocast leaves it in fp32, and casts it for each product that reads it.
  void mark_wide(const Activation& activation) { activations_[activation.id].is_wide = true; }
  // Its kernels are such that only a compiler adds to.
  void mark_of_library(const Activation& activation) {
    activations_[activation.id].merges = MergedBy::compiler;
  }
  // Bytes of the cast that autocast keeps for a product of it, where it is kept already.
  std::int64_t cast_again(const Activation& input) const;
  // The cast of what a product reads, if autocast left that in fp32; as much again for its gradient.
  AutocastWork cast_of(const Activation& input) const;

  void add_parameter(const std::string& name, std::vector<std::int64_t> shape);
  void add_buffer(const std::string& name, std::int64_t elements, int element_bytes);
  // Modules that run before others which are registered earlier: what is so named comes after all so far.
  void register_last(std::string_view prefix);
  std::uint32_t parameter(std::string_view name) const;
  std::int64_t parameter_elements(std::string_view name) const {
    return model_.parameters[parameter(name)].elements;
  }
  bool has_parameter(std::string_view name) const { return parameter_by_name_.contains(name); }

  // Layers added between the two belong to one block.
  void begin_block();
  void end_block();

  // Charges the layer for adding the gradients of inputs that were read before and tells who merges it.
  void add_layer(Layer layer, const std::vector<Activation>& inputs);
  Activation add_matmul(const Matmul& matmul, const Activation& input);
  // The loss of one of the model's outputs.
  // Softmax and its loss over all of `logits`: two passes each way, and the probabilities are kept.
  void add_cross_entropy(const std::string& name, const Activation& logits,
                         TensorSplit split = TensorSplit::replicated);

  Model finish();

 private:
  struct ActivationState {
    std::int64_t elements = 0;
    bool needs_gradient = true;
    bool is_kept = false;
    bool is_read = false;
    bool is_repeatable = false;
    bool is_wide = false;
    MergedBy merges = MergedBy::everybody;  // what reads it
  };

  MergedBy merged_by(const Layer& layer, const std::vector<Activation>& inputs) const;
  std::vector<std::uint32_t> completed_parameters(const Matmul& matmul) const;
  Model model_;
  std::vector<ActivationState> activations_;
  std::int64_t kept_repeatable_ = 0;  // by the layer that is being written
  std::map<std::string, std::uint32_t, std::less<>> parameter_by_name_;
  int next_block_ = 0;
  bool in_block_ = false;
};

}  // namespace lockstep
