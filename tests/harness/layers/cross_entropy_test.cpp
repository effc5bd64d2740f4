#include "validate/harness/layers/cross_entropy.h"

#include "tests/harness/layers/gradient_check.h"

namespace lockstep::harness::cross_entropy_test {

struct Loss {
  std::unique_ptr<Device> device = make_cpu_device();
  ModuleFactory factory{*device, Type::fp32};
  CrossEntropy loss{factory, "loss", 3, 4};
  RecordedStep recorded;
  Step step{.device = *device, .observer = recorded};
  Buffer logits{*device, 12, Type::fp32};
  Buffer targets{*device, 3, Type::int32};

  double of(const std::vector<float>& values) {
    const std::int32_t answers[] = {1, 3, 1};
    device->upload(logits.tensor(), values.data());
    device->upload(targets.tensor(), answers);
    loss.forward(step, logits.tensor(), targets.tensor());
    return static_cast<double>(read_back(*device, loss.loss())[0]);
  }
};

// Equal logits: every class has the share 1/4, whatever their common value.
TEST_CASE("the loss of equal logits is the logarithm of the number of classes") {
  Loss loss;
  CHECK(loss.of(std::vector<float>(12, 5.0F)) == doctest::Approx(std::log(4.0)).epsilon(1e-6));
}

// One number at a time: the loss is a single fp32 number near 2, whose rounding of 2^-23 is 2^-23 / 1e-2 in a
// difference quotient of eps = 1e-2, its truncation eps^2 / 6.
TEST_CASE("the logits' gradient is that of the mean loss, times the scale of the step") {
  Loss loss;
  loss.step.loss_scale = 8;
  const std::vector<float> logits = normal_values(12, 1);
  loss.of(logits);
  const std::vector<float> gradient = read_back(*loss.device, loss.loss.backward(loss.step));
  for (std::size_t index = 0; index < logits.size(); ++index) {
    std::vector<float> forth = logits;
    std::vector<float> back = logits;
    forth[index] += 1e-2F;
    back[index] -= 1e-2F;
    const double difference = (loss.of(forth) - loss.of(back)) / 2e-2;
    CHECK(std::abs(static_cast<double>(gradient[index]) / 8 - difference) < 1e-4);
  }
}

}  // namespace lockstep::harness::cross_entropy_test
