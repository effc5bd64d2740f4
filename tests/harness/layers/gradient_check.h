#pragma once

// Analytic gradients of a module against finite differences.
//
// The loss is L = sum w_i y_i over the outputs, w fixed and normal, summed in double. Along a direction s of
// random signs the gradient g predicts g.s, whose typical size is |g|; the central difference
// (L(x + eps s) - L(x - eps s)) / (2 eps) is wrong by
//   truncation  eps^2 / 6 of the third derivative: for layers whose numbers are near 1 about 1e-5 |g|, and
//   rounding    2^-24 of each output, also of what was summed to it: about 2^-24 |y| |w| / (eps |g|), 1e-5.
// 1e-3 |g| leaves room for layers of a few dozen sums. An error d of the gradient shows as about |d|.

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/random.h"
#include "tests/harness/layers/recorded_step.h"
#include "validate/harness/device/cpu_device.h"
#include "validate/harness/layers/draws.h"

namespace lockstep::harness {

inline std::vector<float> normal_values(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t index = 0; index < count; ++index)
    values[index] = normal_draw(keyed_random(seed, 0, index));
  return values;
}

inline double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t index = 0; index < a.size(); ++index)
    sum += static_cast<double>(a[index]) * static_cast<double>(b[index]);
  return sum;
}

inline double length(const std::vector<float>& values) {
  return std::sqrt(dot(values, values));
}

inline std::vector<float> read_back(Device& device, Tensor tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements));
  device.download(values.data(), tensor);
  return values;
}

class GradientCheck {
 public:
  GradientCheck() : device_(make_cpu_device()), factory_(*device_, Type::fp32, 7) {}

  Device& device() { return *device_; }
  ModuleFactory& factory() { return factory_; }

  // Of all parameters and of the input.
  void check(Module& module, const std::vector<float>& input) {
    const Buffer values = upload(input);
    run(module, values.tensor());
    check_along(module, values.tensor(), values.tensor(), input_gradient_, "input");
    check_parameters(module, values.tensor());
  }

  void check_parameters_only(Module& module, Tensor input) {
    run(module, input);
    CHECK(input_gradient_.empty());
    check_parameters(module, input);
  }

  Buffer upload(const std::vector<float>& values) {
    Buffer buffer(*device_, static_cast<std::int64_t>(values.size()), Type::fp32);
    device_->upload(buffer.tensor(), values.data());
    return buffer;
  }

 private:
  static constexpr float epsilon = 5e-3F;
  static constexpr double tolerance = 1e-3;

  // Gains of 1 and shifts of 0 would hide what depends on them.
  void spread_constants() {
    for (std::uint32_t index = 0; index < parameter_count_; ++index) {
      const Parameter& parameter = factory_.parameter(index);
      if (parameter.initial.kind != InitialValues::Kind::constant)
        continue;
      std::vector<float> values = normal_values(static_cast<std::size_t>(parameter.elements), 100 + index);
      for (float& value : values) value = parameter.initial.value + 0.3F * value;
      device_->upload(parameter.value, values.data());
    }
  }

  double loss(Module& module, Tensor input) {
    Step step{.device = *device_, .observer = recorded_};
    return dot(read_back(*device_, module.forward(step, input)), output_weights_);
  }

  // Forward and backward twice: the second backward adds the same gradients to those of the first.
  void run(Module& module, Tensor input) {
    Step step{.device = *device_, .observer = recorded_};
    count_parameters(module, input);
    spread_constants();
    const Tensor output = module.forward(step, input);
    output_weights_ = normal_values(static_cast<std::size_t>(output.elements), 3);
    const Buffer output_gradient = upload(output_weights_);
    const Tensor input_gradient = module.backward(step, output_gradient.tensor());
    input_gradient_ = input_gradient.is_empty() ? std::vector<float>{} : read_back(*device_, input_gradient);
    gradients_.clear();
    for (std::uint32_t index = 0; index < parameter_count_; ++index)
      gradients_.push_back(read_back(*device_, factory_.parameter(index).gradient));
    check_accumulation(module, input, output_gradient.tensor());
  }

  // Parameters are those that become ready in a backward.
  void count_parameters(Module& module, Tensor input) {
    RecordedStep recorded;
    Step step{.device = *device_, .observer = recorded};
    const Buffer gradient =
        upload(normal_values(static_cast<std::size_t>(module.forward(step, input).elements), 3));
    module.backward(step, gradient.tensor());
    parameter_count_ = static_cast<std::uint32_t>(recorded.ready.size());
  }

  void check_accumulation(Module& module, Tensor input, Tensor output_gradient) {
    Step step{.device = *device_, .observer = recorded_, .is_first_micro_batch = false};
    module.forward(step, input);
    module.backward(step, output_gradient);
    for (std::uint32_t index = 0; index < parameter_count_; ++index) {
      const std::vector<float> twice = read_back(*device_, factory_.parameter(index).gradient);
      std::vector<float> error(twice.size());
      for (std::size_t element = 0; element < twice.size(); ++element)
        error[element] = twice[element] - 2 * gradients_[index][element];
      CHECK(length(error) <= 1e-6 * length(twice));
    }
  }

  void check_parameters(Module& module, Tensor input) {
    for (std::uint32_t index = 0; index < parameter_count_; ++index) {
      const Parameter& parameter = factory_.parameter(index);
      check_along(module, input, parameter.value, gradients_[index], parameter.name);
    }
  }

  void check_along(Module& module, Tensor input, Tensor moved, const std::vector<float>& gradient,
                   const std::string& what) {
    CAPTURE(what);
    REQUIRE(gradient.size() == static_cast<std::size_t>(moved.elements));
    const std::vector<float> start = read_back(*device_, moved);
    CHECK(length(gradient) > 0);
    for (std::uint64_t direction = 0; direction < 4; ++direction) {
      std::vector<float> signs(start.size());
      for (std::size_t index = 0; index < signs.size(); ++index)
        signs[index] = keyed_random(direction, 1, index) % 2 == 0 ? 1.0F : -1.0F;
      const double forth = loss_at(module, input, moved, start, signs, epsilon);
      const double back = loss_at(module, input, moved, start, signs, -epsilon);
      const double difference = (forth - back) / (2 * static_cast<double>(epsilon));
      CHECK(std::abs(difference - dot(gradient, signs)) <= tolerance * length(gradient));
    }
    device_->upload(moved, start.data());
  }

  double loss_at(Module& module, Tensor input, Tensor moved, const std::vector<float>& start,
                 const std::vector<float>& signs, float distance) {
    std::vector<float> values = start;
    for (std::size_t index = 0; index < values.size(); ++index) values[index] += distance * signs[index];
    device_->upload(moved, values.data());
    return loss(module, input);
  }

  std::unique_ptr<Device> device_;
  ModuleFactory factory_;
  RecordedStep recorded_;
  std::uint32_t parameter_count_ = 0;
  std::vector<float> output_weights_;
  std::vector<float> input_gradient_;
  std::vector<std::vector<float>> gradients_;
};

}  // namespace lockstep::harness
