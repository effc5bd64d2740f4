#include "validate/harness/layers/activation.h"

namespace lockstep::harness {

Relu::Relu(ModuleFactory& factory, const std::string& name, std::int64_t elements)
    : Leaf(factory, name, {}),
      output_(factory.make_activation(elements)),
      input_gradient_(factory.make_activation(elements)) {}

Tensor Relu::compute_forward(Step& step, Tensor input) {
  step.device.relu(output_.tensor(), input);
  return output_.tensor();
}

Tensor Relu::compute_backward(Step& step, Tensor output_gradient) {
  step.device.relu_backward(input_gradient_.tensor(), output_gradient, output_.tensor());
  return input_gradient_.tensor();
}

Gelu::Gelu(ModuleFactory& factory, const std::string& name, std::int64_t elements)
    : Leaf(factory, name, {}),
      output_(factory.make_activation(elements)),
      input_gradient_(factory.make_activation(elements)) {}

Tensor Gelu::compute_forward(Step& step, Tensor input) {
  input_ = input;
  step.device.gelu(output_.tensor(), input);
  return output_.tensor();
}

Tensor Gelu::compute_backward(Step& step, Tensor output_gradient) {
  step.device.gelu_backward(input_gradient_.tensor(), output_gradient, input_);
  return input_gradient_.tensor();
}

}  // namespace lockstep::harness
