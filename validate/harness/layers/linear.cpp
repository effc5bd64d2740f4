#include "validate/harness/layers/linear.h"

#include <cmath>

namespace lockstep::harness {

namespace {

InitialValues uniform_of_fan_in(std::int64_t inputs) {
  return {.kind = InitialValues::Kind::uniform, .value = 1 / std::sqrt(static_cast<float>(inputs))};
}

}  // namespace

Linear::Parameters Linear::add_parameters(ModuleFactory& factory, const LinearOptions& options) {
  const InitialValues usual = uniform_of_fan_in(options.inputs);
  Parameters parameters;
  if (options.tied_weight) {
    parameters.weight = *options.tied_weight;
  } else {
    parameters.weight = factory.add_parameter(options.name + ".weight", options.inputs * options.outputs,
                                              options.weight.value_or(usual), true);
  }
  if (options.has_bias) {
    parameters.bias =
        factory.add_parameter(options.name + ".bias", options.outputs, options.bias.value_or(usual), false);
    parameters.completed.push_back(*parameters.bias);
  }
  if (!options.tied_weight)
    parameters.completed.push_back(parameters.weight);
  return parameters;
}

Linear::Linear(ModuleFactory& factory, const LinearOptions& options)
    : Linear(factory, options, add_parameters(factory, options)) {}

Linear::Linear(ModuleFactory& factory, const LinearOptions& options, const Parameters& parameters)
    : Leaf(factory, options.name, parameters.completed),
      rows_(options.rows),
      inputs_(options.inputs),
      outputs_(options.outputs),
      stores_transposed_(options.stores_transposed),
      weight_(factory.parameter(parameters.weight)),
      bias_(parameters.bias ? &factory.parameter(*parameters.bias) : nullptr),
      output_(factory.make_activation(rows_ * outputs_)) {
  if (options.needs_input_gradient)
    input_gradient_ = factory.make_activation(rows_ * inputs_);
  factory.count_forward_flops(2.0 * static_cast<double>(rows_ * inputs_) * static_cast<double>(outputs_));
}

Tensor Linear::compute_forward(Step& step, Tensor input) {
  input_ = input;
  step.device.matmul({.a = {.tensor = input},
                      .b = {.tensor = weight_.multiplied, .is_transposed = !stores_transposed_},
                      .output = {.tensor = output_.tensor()},
                      .rows = rows_,
                      .columns = outputs_,
                      .inner = inputs_});
  if (bias_ != nullptr)
    step.device.add_bias(output_.tensor(), bias_->value);
  return output_.tensor();
}

Tensor Linear::compute_backward(Step& step, Tensor output_gradient) {
  if (bias_ != nullptr)
    step.device.sum_columns(bias_->gradient, output_gradient, !step.is_first_micro_batch);
  add_weight_gradient(step, output_gradient);
  if (!input_gradient_.tensor().is_empty()) {
    step.device.matmul({.a = {.tensor = output_gradient},
                        .b = {.tensor = weight_.multiplied, .is_transposed = stores_transposed_},
                        .output = {.tensor = input_gradient_.tensor()},
                        .rows = rows_,
                        .columns = inputs_,
                        .inner = outputs_});
  }
  return input_gradient_.tensor();
}

// [outputs, inputs] = transposed output gradient * input, or the transpose of both sides.
void Linear::add_weight_gradient(Step& step, Tensor output_gradient) {
  const Tensor left = stores_transposed_ ? input_ : output_gradient;
  const Tensor right = stores_transposed_ ? output_gradient : input_;
  step.device.matmul({.a = {.tensor = left, .is_transposed = true},
                      .b = {.tensor = right},
                      .output = {.tensor = weight_.gradient},
                      .rows = stores_transposed_ ? inputs_ : outputs_,
                      .columns = stores_transposed_ ? outputs_ : inputs_,
                      .inner = rows_,
                      .accumulates = !step.is_first_micro_batch});
}

}  // namespace lockstep::harness
