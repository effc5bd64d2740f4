#include "validate/harness/layers/activation.h"

#include "tests/harness/layers/gradient_check.h"

namespace lockstep::harness::activation_test {

// Further from the kink at 0 than any finite difference reaches.
TEST_CASE("ReLU passes the gradient on where its input is positive") {
  std::vector<float> input = normal_values(40, 1);
  for (float& value : input) value += value > 0 ? 0.1F : -0.1F;
  GradientCheck check;
  Relu relu(check.factory(), "relu", 40);
  check.check(relu, input);
}

TEST_CASE("GELU's gradient is that of the tanh form") {
  GradientCheck check;
  Gelu gelu(check.factory(), "gelu", 40);
  check.check(gelu, normal_values(40, 1));
}

}  // namespace lockstep::harness::activation_test
