#include "validate/harness/layers/norm.h"

namespace lockstep::harness {

namespace {

constexpr float running_momentum = 0.1F;  // torch.nn.BatchNorm2d's

std::uint32_t add_column_parameter(ModuleFactory& factory, const NormOptions& options, const char* kind,
                                   float value) {
  return factory.add_parameter(options.name + kind, options.columns, {.value = value}, false);
}

}  // namespace

// Braces evaluate from left to right: the gain is registered first.
Norm::Norm(ModuleFactory& factory, const NormOptions& options, std::int64_t statistics)
    : Norm{factory, options, statistics, add_column_parameter(factory, options, ".weight", options.gain),
           add_column_parameter(factory, options, ".bias", 0)} {}

Norm::Norm(ModuleFactory& factory, const NormOptions& options, std::int64_t statistics, std::uint32_t gain,
           std::uint32_t shift)
    : Leaf(factory, options.name, {gain, shift}),
      output_(factory.make_activation(options.rows * options.columns)),
      input_gradient_(factory.make_activation(options.rows * options.columns)),
      gain_(factory.parameter(gain)),
      shift_(factory.parameter(shift)),
      mean_(factory.device(), statistics, Type::fp32),
      inverse_deviation_(factory.device(), statistics, Type::fp32),
      shape_{.rows = options.rows,
             .columns = options.columns,
             .gain = gain_.value,
             .shift = shift_.value,
             .mean = mean_.tensor(),
             .inverse_deviation = inverse_deviation_.tensor()} {}

NormalisationGradients Norm::gradients(const Step& step) const {
  return {.gain = gain_.gradient, .shift = shift_.gradient, .accumulates = !step.is_first_micro_batch};
}

Tensor LayerNorm::compute_forward(Step& step, Tensor input) {
  input_ = input;
  step.device.layer_norm(shape(), output_.tensor(), input);
  return output_.tensor();
}

Tensor LayerNorm::compute_backward(Step& step, Tensor output_gradient) {
  step.device.layer_norm_backward(shape(), gradients(step), input_gradient_.tensor(), output_gradient,
                                  input_);
  return input_gradient_.tensor();
}

BatchNorm::BatchNorm(ModuleFactory& factory, const NormOptions& options)
    : Norm(factory, options, options.columns),
      running_mean_(factory.add_buffer(options.columns, 0)),
      running_variance_(factory.add_buffer(options.columns, 1)) {}

Tensor BatchNorm::compute_forward(Step& step, Tensor input) {
  input_ = input;
  step.device.batch_norm(shape(), running_mean_, running_variance_, running_momentum, output_.tensor(),
                         input);
  return output_.tensor();
}

Tensor BatchNorm::compute_backward(Step& step, Tensor output_gradient) {
  step.device.batch_norm_backward(shape(), gradients(step), input_gradient_.tensor(), output_gradient,
                                  input_);
  return input_gradient_.tensor();
}

}  // namespace lockstep::harness
