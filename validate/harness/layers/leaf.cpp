#include "validate/harness/layers/leaf.h"

namespace lockstep::harness {

Tensor Leaf::forward(Step& step, Tensor input) {
  const LayerScope scope(step, layer_, Pass::forward);
  return compute_forward(step, input);
}

Tensor Leaf::backward(Step& step, Tensor output_gradient) {
  Tensor input_gradient;
  {
    const LayerScope scope(step, layer_, Pass::backward);
    input_gradient = compute_backward(step, output_gradient);
  }
  for (const std::uint32_t parameter : completed_) step.observer.gradient_ready(parameter);
  return input_gradient;
}

}  // namespace lockstep::harness
