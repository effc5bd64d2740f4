#pragma once

// What every layer does besides computing: it says when it begins and ends and which gradients are complete.
//
// Problem:   if each layer told the observer by itself, one of them would forget.
// Idea:      a Leaf computes; its base class records it with the factory and surrounds both passes with
//            marks. Residual connections and the loss, which are no leaves, use the same within_layer.
// Invariant: layers are made in forward order. `completed` stands in autograd's order: the bias of a linear
//            layer before its weight, the weight of a norm or convolution before its bias.

#include <string>
#include <vector>

#include "validate/harness/layers/module.h"

namespace lockstep::harness {

// work() between the layer's marks. Marks may fail as any call to a device may: this is no scope whose end would
// have to be silent, and a layer that fails has no end.
template <class Work>
Tensor within_layer(Step& step, std::uint32_t layer, Pass pass, Work work) {
  step.observer.layer_begins(layer, pass);
  const Tensor result = work();
  step.observer.layer_ends(layer, pass);
  return result;
}

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
