#include "validate/harness/training/optimizer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "sim/base/error.h"
#include "tests/harness/device/device_numbers.h"

namespace lockstep::harness::optimizer_test {

// Two parameters of 33 and 5 elements with values and gradients of their own.
class Net {
 public:
  explicit Net(Device& device) : device_(device) {
    for (const std::int64_t elements : {33, 5}) {
      values_.push_back(on_device(device, draws(elements, 51)));
      gradients_.push_back(on_device(device, draws(elements, 52)));
      auto parameter = std::make_unique<Parameter>();
      parameter->elements = elements;
      parameter->value = values_.back().tensor();
      parameter->gradient = gradients_.back().tensor();
      parameters.push_back(std::move(parameter));
    }
  }

  Numbers values(std::size_t index) const { return numbers_of(device_, values_[index]); }
  Numbers gradients(std::size_t index) const { return numbers_of(device_, gradients_[index]); }
  void set_gradient(std::size_t index, std::size_t place, double value) {
    const auto single = static_cast<float>(value);
    device_.upload(gradients_[index].tensor().part(static_cast<std::int64_t>(place), 1), &single);
  }

  Parameters parameters;

 private:
  Device& device_;
  std::vector<Buffer> values_;
  std::vector<Buffer> gradients_;
};

// One element's state, as torch.optim writes its updates.
struct Reference {
  double value;
  double first = 0;
  double second = 0;

  void momentum(double gradient, double rate, double factor, double decay) {
    first = factor * first + (gradient + decay * value);
    value -= rate * first;
  }
  void adamw(double gradient, double rate, double decay, int step) {
    value *= 1 - rate * decay;
    first = 0.9 * first + 0.1 * gradient;
    second = 0.999 * second + 0.001 * gradient * gradient;
    const double corrected = first / (1 - std::pow(0.9, step));
    value -= rate * corrected / (std::sqrt(second / (1 - std::pow(0.999, step))) + 1e-8);
  }
};

constexpr double rate = 0.125;
constexpr double decay = 0.25;
constexpr int steps = 6;
constexpr double factor = 0.5;  // undone by `gradient_scale`

// Six steps from values below 1, each rounded some four times.
constexpr double most = steps * 4 * 2 * 0x1p-24;

template <class Update>
void check_updates(const char* name, Update update) {
  const auto device = make_cpu_device();
  Net net(*device);
  std::vector<std::vector<Reference>> references;
  for (std::size_t p = 0; p < 2; ++p) {
    references.emplace_back();
    for (const double value : net.values(p)) references.back().push_back({value});
  }
  Optimizer optimizer(*device, net.parameters,
                      {.name = name, .learning_rate = rate, .momentum = 0.75F, .weight_decay = decay});
  for (int step = 1; step <= steps; ++step) {
    optimizer.step(factor);
    for (std::size_t p = 0; p < 2; ++p) {
      for (std::size_t i = 0; i < references[p].size(); ++i)
        update(references[p][i], factor * net.gradients(p)[i], step);
    }
  }
  for (std::size_t p = 0; p < 2; ++p) {
    Numbers expected;
    for (const Reference& reference : references[p]) expected.push_back(reference.value);
    CHECK(largest_difference(net.values(p), expected) <= most);
  }
}

Parameters one_huge_parameter() {
  Parameters parameters;
  parameters.push_back(std::make_unique<Parameter>());
  parameters.back()->elements = std::int64_t{1} << 50;
  return parameters;
}

TEST_CASE("plain descent is PyTorch's SGD") {
  check_updates("sgd", [](Reference& reference, double gradient, int) {
    reference.momentum(gradient, rate, 0, decay);
  });
}

TEST_CASE("descent with momentum is PyTorch's SGD") {
  check_updates("momentum", [](Reference& reference, double gradient, int) {
    reference.momentum(gradient, rate, 0.75, decay);
  });
}

TEST_CASE("AdamW is PyTorch's, its decay apart from the gradient") {
  check_updates("adamw", [](Reference& reference, double gradient, int step) {
    reference.adamw(gradient, rate, decay, step);
  });
}

TEST_CASE("AdamW's epsilon halves the first step of a gradient as small as itself") {
  // p - rate g / (|g| + 1e-8), and a step of any larger gradient is the rate.
  const auto device = make_cpu_device();
  const Buffer value = on_device(*device, {0, 0});
  const Buffer moments = on_device(*device, {0, 0, 0, 0});
  device->adamw(value.tensor(), on_device(*device, {1e-8, -1}).tensor(), moments.tensor().part(0, 2),
                moments.tensor().part(2, 2), {.learning_rate = rate});
  CHECK(numbers_of(*device, value)[0] == doctest::Approx(-rate / 2).epsilon(1e-5));
  CHECK(numbers_of(*device, value)[1] == doctest::Approx(rate).epsilon(1e-5));
}

TEST_CASE("no optimizer leaves parameters as they are") {
  check_updates("none", [](Reference&, double, int) {});
}

TEST_CASE("descent without momentum has no state") {
  // A state of 2^52 bytes cannot be had.
  const auto device = make_cpu_device();
  const Parameters parameters = one_huge_parameter();
  CHECK_NOTHROW(Optimizer(*device, parameters, {.name = "sgd"}));
  CHECK_NOTHROW(Optimizer(*device, parameters, {.name = "none"}));
  CHECK_THROWS_AS(Optimizer(*device, parameters, {.name = "momentum"}), EnvironmentError);
  CHECK_THROWS_AS(Optimizer(*device, parameters, {.name = "adamw"}), EnvironmentError);
}

TEST_CASE("an unknown optimizer is the user's mistake, and the nearest name is told") {
  const auto device = make_cpu_device();
  const Parameters none;
  CHECK_THROWS_WITH_AS(Optimizer(*device, none, {.name = "adam"}),
                       doctest::Contains("did you mean \"adamw\""), ConfigError);
}

TEST_CASE("a gradient that is not finite skips the step and halves the scale") {
  const auto device = make_cpu_device();
  for (const double bad : {HUGE_VAL, -HUGE_VAL, std::numeric_limits<double>::quiet_NaN()}) {
    for (const std::size_t parameter : {0U, 1U}) {
      Net net(*device);
      const Numbers before[] = {net.values(0), net.values(1)};
      Optimizer optimizer(*device, net.parameters, {.name = "sgd"});
      LossScaler scaler(*device, net.parameters);
      net.set_gradient(parameter, 4, bad);
      CHECK_FALSE(scaler.step(optimizer));
      CHECK(scaler.scale() == 32768);
      CHECK(net.values(0) == before[0]);
      CHECK(net.values(1) == before[1]);
      net.set_gradient(parameter, 4, 0);
      CHECK(scaler.step(optimizer));
      CHECK(scaler.scale() == 32768);
      CHECK(net.values(0) != before[0]);
    }
  }
}

TEST_CASE("the scale doubles after so many clean steps in a row") {
  const auto device = make_cpu_device();
  Net net(*device);
  Optimizer optimizer(*device, net.parameters, {.name = "none"});
  LossScaler scaler(*device, net.parameters, {.initial_scale = 8, .clean_steps_to_double = 3});
  const auto steps_of = [&](int count) {
    for (int i = 0; i < count; ++i) scaler.step(optimizer);
    return scaler.scale();
  };
  CHECK(steps_of(2) == 8);
  CHECK(steps_of(1) == 16);
  CHECK(steps_of(2) == 16);
  net.set_gradient(0, 0, HUGE_VAL);
  CHECK(steps_of(1) == 8);
  net.set_gradient(0, 0, 1);
  CHECK(steps_of(2) == 8);  // counted from the step that was skipped
  CHECK(steps_of(1) == 16);
}

TEST_CASE("the scale of a loss is undone before the update") {
  const auto device = make_cpu_device();
  Net plain(*device);
  Net scaled(*device);
  Optimizer plain_optimizer(*device, plain.parameters, {.name = "momentum"});
  Optimizer scaled_optimizer(*device, scaled.parameters, {.name = "momentum"});
  LossScaler scaler(*device, scaled.parameters);
  for (const auto& parameter : scaled.parameters)
    device->scale(parameter->gradient, parameter->gradient, scaler.scale());
  plain_optimizer.step();
  CHECK(scaler.step(scaled_optimizer));
  // A power of two is exact.
  CHECK(scaled.values(0) == plain.values(0));
  CHECK(scaled.values(1) == plain.values(1));
}

}  // namespace lockstep::harness::optimizer_test
