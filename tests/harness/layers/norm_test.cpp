#include "validate/harness/layers/norm.h"

#include "tests/harness/layers/gradient_check.h"

namespace lockstep::harness::norm_test {

TEST_CASE("LayerNorm's gradients are those of its loss") {
  GradientCheck check;
  LayerNorm norm(check.factory(), {.name = "ln", .rows = 6, .columns = 8});
  check.check(norm, normal_values(6 * 8, 1));
}

TEST_CASE("BatchNorm's gradients are those of its loss") {
  GradientCheck check;
  BatchNorm norm(check.factory(), {.name = "bn", .rows = 12, .columns = 5});
  check.check(norm, normal_values(12 * 5, 1));
}

// Rows 1, 2, 3: the mean is 2, the variance 2 / (n - 1) = 1. Means begin at 0, variances at 1.
TEST_CASE("BatchNorm's running statistics move a tenth of the way to the batch's") {
  GradientCheck check;
  BatchNorm norm(check.factory(), {.name = "bn", .rows = 3, .columns = 2});
  const std::vector<Tensor> buffers = check.factory().take_buffers();
  REQUIRE(buffers.size() == 2);
  const Buffer input = check.upload({1, 10, 2, 20, 3, 30});
  RecordedStep recorded;
  Step step{.device = check.device(), .observer = recorded};
  norm.forward(step, input.tensor());
  const std::vector<float> means = read_back(check.device(), buffers[0]);
  const std::vector<float> variances = read_back(check.device(), buffers[1]);
  CHECK(means[0] == doctest::Approx(0.1 * 2));
  CHECK(means[1] == doctest::Approx(0.1 * 20));
  CHECK(variances[0] == doctest::Approx(0.9 + 0.1 * 1));
  CHECK(variances[1] == doctest::Approx(0.9 + 0.1 * 100));
}

}  // namespace lockstep::harness::norm_test
