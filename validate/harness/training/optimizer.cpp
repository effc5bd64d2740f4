#include "validate/harness/training/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"

namespace lockstep::harness {

Optimizer::Optimizer(Device& device, const Parameters& parameters, const OptimizerOptions& options)
    : device_(device), parameters_(parameters), options_(options), rule_(rule_of(options.name)) {
  for (const auto& parameter : parameters_) {
    if (rule_ == Rule::momentum || rule_ == Rule::adamw)
      first_moments_.push_back(zeros_like(*parameter));
    if (rule_ == Rule::adamw)
      second_moments_.push_back(zeros_like(*parameter));
  }
}

void Optimizer::step(float gradient_scale) {
  ++steps_;
  const SgdStep sgd = {.learning_rate = options_.learning_rate,
                       .momentum = rule_ == Rule::momentum ? options_.momentum : 0,
                       .weight_decay = options_.weight_decay,
                       .gradient_scale = gradient_scale};
  const AdamStep adamw = {.learning_rate = options_.learning_rate,
                          .weight_decay = options_.weight_decay,
                          .gradient_scale = gradient_scale,
                          .step = steps_};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = *parameters_[i];
    if (rule_ == Rule::sgd)
      device_.sgd(parameter.value, parameter.gradient, {}, sgd);
    else if (rule_ == Rule::momentum)
      device_.sgd(parameter.value, parameter.gradient, first_moments_[i].tensor(), sgd);
    else if (rule_ == Rule::adamw)
      device_.adamw(parameter.value, parameter.gradient, first_moments_[i].tensor(),
                    second_moments_[i].tensor(), adamw);
  }
}

Optimizer::Rule Optimizer::rule_of(const std::string& name) {
  const std::array<std::string, 4> names = {"none", "sgd", "momentum", "adamw"};
  const auto* const found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw ConfigError(fmt::format("unknown optimizer \"{}\": {}", name, describe_choices(name, names)));
  return static_cast<Rule>(found - names.begin());
}

Buffer Optimizer::zeros_like(const Parameter& parameter) {
  Buffer buffer(device_, parameter.elements, Type::fp32);
  device_.fill_zero(buffer.tensor());
  return buffer;
}

LossScaler::LossScaler(Device& device, const Parameters& parameters, const Options& options)
    : device_(device),
      parameters_(parameters),
      options_(options),
      found_(device, 1, Type::fp32),
      scale_(options.initial_scale) {}

bool LossScaler::step(Optimizer& optimizer) {
  if (!gradients_are_finite()) {
    scale_ /= 2;
    clean_steps_ = 0;
    return false;
  }
  optimizer.step(1 / scale_);
  if (++clean_steps_ == options_.clean_steps_to_double) {
    scale_ *= 2;
    clean_steps_ = 0;
  }
  return true;
}

bool LossScaler::gradients_are_finite() {
  device_.fill_zero(found_.tensor());
  for (const auto& parameter : parameters_) device_.find_non_finite(found_.tensor(), parameter->gradient);
  float found = 0;
  device_.download(&found, found_.tensor());
  return found == 0;
}

}  // namespace lockstep::harness
