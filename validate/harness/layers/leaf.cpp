#include "validate/harness/layers/leaf.h"

namespace lockstep::harness {

Tensor Leaf::forward(Step& step, Tensor input) {
  return within_layer(step, layer_, Pass::forward, [&] { return compute_forward(step, input); });
}

Tensor Leaf::backward(Step& step, Tensor output_gradient) {
  const Tensor input_gradient =
      within_layer(step, layer_, Pass::backward, [&] { return compute_backward(step, output_gradient); });
  for (const std::uint32_t parameter : completed_) step.observer.gradient_ready(parameter);
  return input_gradient;
}

}  // namespace lockstep::harness
