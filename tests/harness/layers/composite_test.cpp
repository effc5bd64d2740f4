#include "validate/harness/layers/composite.h"

#include "tests/harness/layers/gradient_check.h"
#include "validate/harness/layers/activation.h"
#include "validate/harness/layers/linear.h"
#include "validate/harness/layers/norm.h"

namespace lockstep::harness::composite_test {

std::unique_ptr<Linear> make_linear(ModuleFactory& factory, const std::string& name) {
  return std::make_unique<Linear>(factory, LinearOptions{.name = name, .rows = 3, .inputs = 4, .outputs = 4});
}

TEST_CASE("a path's gradient and its input's own add up") {
  GradientCheck check;
  Residual residual(
      check.factory(),
      {.name = "add", .path = make_linear(check.factory(), "path"), .inputs = 12, .outputs = 12});
  check.check(residual, normal_values(12, 1));
}

// What is made last goes first: the shortcut (parameters 2, 3), then the path (0, 1); biases before weights.
TEST_CASE("backward runs the shortcut before the path it goes around") {
  GradientCheck check;
  auto path = make_linear(check.factory(), "path");
  auto shortcut = make_linear(check.factory(), "shortcut");
  Residual residual(
      check.factory(),
      {.name = "add", .path = std::move(path), .shortcut = std::move(shortcut), .inputs = 12, .outputs = 12});
  check.check(residual, normal_values(12, 1));

  RecordedStep recorded;
  Step step{.device = check.device(), .observer = recorded};
  const Buffer input = check.upload(normal_values(12, 1));
  residual.backward(step, residual.forward(step, input.tensor()));
  CHECK(recorded.ready == std::vector<std::uint32_t>{3, 2, 1, 0});
}

TEST_CASE("a sequence's gradients are those of its loss") {
  GradientCheck check;
  Sequential network;
  network.append(make_linear(check.factory(), "0"));
  network.make<Gelu>(check.factory(), "1", 12);
  network.make<LayerNorm>(check.factory(), NormOptions{.name = "2", .rows = 3, .columns = 4});
  network.append(make_linear(check.factory(), "3"));
  check.check(network, normal_values(12, 1));
}

}  // namespace lockstep::harness::composite_test
