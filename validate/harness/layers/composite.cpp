#include "validate/harness/layers/composite.h"

#include <utility>

namespace lockstep::harness {

Sequential& Sequential::append(std::unique_ptr<Module> child) {
  children_.push_back(std::move(child));
  return *this;
}

Tensor Sequential::forward(Step& step, Tensor input) {
  for (const auto& child : children_) input = child->forward(step, input);
  return input;
}

Tensor Sequential::backward(Step& step, Tensor output_gradient) {
  for (auto child = children_.rbegin(); child != children_.rend(); ++child)
    output_gradient = (*child)->backward(step, output_gradient);
  return output_gradient;
}

Residual::Residual(ModuleFactory& factory, Options options)
    : path_(std::move(options.path)),
      shortcut_(std::move(options.shortcut)),
      layer_(factory.add_layer(options.name, {})),
      output_(factory.make_activation(options.outputs)),
      input_gradient_(factory.make_activation(options.inputs)) {}

Tensor Residual::forward(Step& step, Tensor input) {
  const Tensor along = path_->forward(step, input);
  const Tensor around = shortcut_ ? shortcut_->forward(step, input) : input;
  return within_layer(step, layer_, Pass::forward, [&] {
    step.device.add(output_.tensor(), along, around);
    return output_.tensor();
  });
}

Tensor Residual::backward(Step& step, Tensor output_gradient) {
  const Tensor around = shortcut_ ? shortcut_->backward(step, output_gradient) : output_gradient;
  const Tensor along = path_->backward(step, output_gradient);
  return within_layer(step, layer_, Pass::backward, [&] {
    step.device.add(input_gradient_.tensor(), along, around);
    return input_gradient_.tensor();
  });
}

}  // namespace lockstep::harness
