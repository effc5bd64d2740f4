#include "validate/harness/layers/image_layers.h"

#include <cmath>

namespace lockstep::harness {

namespace {

std::uint32_t add_weight(ModuleFactory& factory, const std::string& name, const Convolution& shape) {
  const auto fan_out = static_cast<float>(shape.outputs * shape.kernel * shape.kernel);
  const InitialValues initial{.kind = InitialValues::Kind::normal, .value = std::sqrt(2 / fan_out)};
  return factory.add_parameter(name + ".weight", shape.outputs * shape.patch(), initial, true);
}

std::int64_t input_elements(const Convolution& shape) {
  return shape.batch * shape.height * shape.width * shape.inputs;
}

std::int64_t output_elements(const Convolution& shape) {
  return shape.batch * shape.output_height() * shape.output_width() * shape.outputs;
}

std::int64_t input_elements(const Pooling& shape) {
  return shape.batch * shape.height * shape.width * shape.channels;
}

std::int64_t output_elements(const Pooling& shape) {
  return shape.batch * shape.output_height() * shape.output_width() * shape.channels;
}

}  // namespace

Convolution2d::Convolution2d(ModuleFactory& factory, const std::string& name, const Convolution& shape,
                             bool needs_input_gradient)
    : Convolution2d(factory, name, shape, add_weight(factory, name, shape)) {
  if (needs_input_gradient)
    input_gradient_ = factory.make_activation(input_elements(shape));
}

Convolution2d::Convolution2d(ModuleFactory& factory, const std::string& name, const Convolution& shape,
                             std::uint32_t weight)
    : Leaf(factory, name, {weight}),
      shape_(shape),
      weight_(factory.parameter(weight)),
      output_(factory.make_activation(output_elements(shape))) {
  factory.count_forward_flops(2.0 * static_cast<double>(output_elements(shape)) *
                              static_cast<double>(shape.patch()));
}

Tensor Convolution2d::compute_forward(Step& step, Tensor input) {
  input_ = input;
  step.device.convolution(shape_, output_.tensor(), input, weight_.multiplied);
  return output_.tensor();
}

Tensor Convolution2d::compute_backward(Step& step, Tensor output_gradient) {
  step.device.convolution_weight_gradient(shape_, weight_.gradient, output_gradient, input_,
                                          !step.is_first_micro_batch);
  if (!input_gradient_.tensor().is_empty()) {
    step.device.convolution_input_gradient(shape_, input_gradient_.tensor(), output_gradient,
                                           weight_.multiplied);
  }
  return input_gradient_.tensor();
}

MaxPool::MaxPool(ModuleFactory& factory, const std::string& name, const Pooling& shape)
    : Leaf(factory, name, {}),
      shape_(shape),
      output_(factory.make_activation(output_elements(shape))),
      input_gradient_(factory.make_activation(input_elements(shape))),
      chosen_(factory.device(), output_elements(shape), Type::int32) {}

Tensor MaxPool::compute_forward(Step& step, Tensor input) {
  step.device.max_pool(shape_, output_.tensor(), chosen_.tensor(), input);
  return output_.tensor();
}

Tensor MaxPool::compute_backward(Step& step, Tensor output_gradient) {
  step.device.max_pool_backward(shape_, input_gradient_.tensor(), output_gradient, chosen_.tensor());
  return input_gradient_.tensor();
}

GlobalAveragePool::GlobalAveragePool(ModuleFactory& factory, const std::string& name, const Shape& shape)
    : Leaf(factory, name, {}),
      shape_(shape),
      output_(factory.make_activation(shape.batch * shape.channels)),
      input_gradient_(factory.make_activation(shape.batch * shape.pixels * shape.channels)) {}

Tensor GlobalAveragePool::compute_forward(Step& step, Tensor input) {
  step.device.average_pool(output_.tensor(), input, shape_.pixels, shape_.channels);
  return output_.tensor();
}

Tensor GlobalAveragePool::compute_backward(Step& step, Tensor output_gradient) {
  step.device.average_pool_backward(input_gradient_.tensor(), output_gradient, shape_.pixels,
                                    shape_.channels);
  return input_gradient_.tensor();
}

}  // namespace lockstep::harness
