#pragma once

// What every layer does besides computing: it says when it begins and ends and which gradients are complete.
//
// Problem:   if each layer told the observer by itself, one of them would forget.
// Idea:      a Leaf computes; its base class records it with the factory and surrounds both passes with
//            marks. Residual connections and the loss, which are no leaves, use the same LayerScope.
// Invariant: layers are made in forward order. `completed` stands in autograd's order: the bias of a linear
//            layer before its weight, the weight of a norm or convolution before its bias.

#include <string>
#include <vector>

#include "validate/harness/layers/module.h"

namespace lockstep::harness {

class LayerScope {
 public:
  LayerScope(Step& step, std::uint32_t layer, Pass pass)
      : observer_(step.observer), layer_(layer), pass_(pass) {
    observer_.layer_begins(layer_, pass_);
  }
  ~LayerScope() { observer_.layer_ends(layer_, pass_); }
  LayerScope(const LayerScope&) = delete;
  LayerScope& operator=(const LayerScope&) = delete;

 private:
  StepObserver& observer_;
  std::uint32_t layer_;
  Pass pass_;
};

class Leaf : public Module {
 public:
  Leaf(ModuleFactory& factory, const std::string& name, std::vector<std::uint32_t> completed)
      : layer_(factory.add_layer(name, completed)), completed_(std::move(completed)) {}

  Tensor forward(Step& step, Tensor input) final;
  Tensor backward(Step& step, Tensor output_gradient) final;

 private:
  virtual Tensor compute_forward(Step& step, Tensor input) = 0;
  virtual Tensor compute_backward(Step& step, Tensor output_gradient) = 0;

  std::uint32_t layer_;
  std::vector<std::uint32_t> completed_;
};

}  // namespace lockstep::harness
