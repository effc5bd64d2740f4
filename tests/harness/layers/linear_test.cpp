#include "validate/harness/layers/linear.h"

#include "tests/harness/layers/gradient_check.h"

namespace lockstep::harness::linear_test {

TEST_CASE("a linear layer's gradients are those of its loss, however its weight is stored") {
  for (const bool stores_transposed : {false, true}) {
    GradientCheck check;
    Linear linear(
        check.factory(),
        {.name = "fc", .rows = 5, .inputs = 6, .outputs = 4, .stores_transposed = stores_transposed});
    check.check(linear, normal_values(5 * 6, 1));
  }
}

TEST_CASE("the first layer of a network computes no gradient of its input") {
  GradientCheck check;
  Linear linear(check.factory(),
                {.name = "0", .rows = 5, .inputs = 6, .outputs = 4, .needs_input_gradient = false});
  const Buffer input = check.upload(normal_values(5 * 6, 1));
  check.check_parameters_only(linear, input.tensor());
}

// weight[o][i] = 10 o + i + 1, input row (1, 2, 3), bias[o] = o: output o = sum_i (i + 1) (10 o + i + 1) + o
// = 10 o * 6 + 14 + o. Stored the other way round the same weight is weight[i][o].
TEST_CASE("a weight of [outputs, inputs] and its transpose give the same output") {
  for (const bool stores_transposed : {false, true}) {
    GradientCheck check;
    Linear linear(
        check.factory(),
        {.name = "fc", .rows = 1, .inputs = 3, .outputs = 2, .stores_transposed = stores_transposed});
    const std::vector<float> by_output = {1, 2, 3, 11, 12, 13};
    const std::vector<float> by_input = {1, 11, 2, 12, 3, 13};
    const std::vector<float> bias = {0, 1};
    check.device().upload(check.factory().parameter(0).value,
                          (stores_transposed ? by_input : by_output).data());
    check.device().upload(check.factory().parameter(1).value, bias.data());
    const Buffer input = check.upload({1, 2, 3});
    RecordedStep recorded;
    Step step{.device = check.device(), .observer = recorded};
    CHECK(read_back(check.device(), linear.forward(step, input.tensor())) ==
          std::vector<float>{14, 60 + 14 + 1});
  }
}

TEST_CASE("a linear layer completes its bias before its weight, after its backward has ended") {
  GradientCheck check;
  Linear linear(check.factory(), {.name = "fc", .rows = 2, .inputs = 3, .outputs = 4});
  CHECK(check.factory().parameter(0).name == "fc.weight");
  CHECK(check.factory().parameter(1).name == "fc.bias");
  const Buffer input = check.upload(normal_values(6, 1));
  const Buffer gradient = check.upload(normal_values(8, 2));
  RecordedStep recorded;
  Step step{.device = check.device(), .observer = recorded};
  linear.forward(step, input.tensor());
  linear.backward(step, gradient.tensor());
  CHECK(recorded.events == std::vector<std::string>{"begin 0 forward", "end 0 forward", "begin 0 backward",
                                                    "end 0 backward", "ready 1", "ready 0"});
}

TEST_CASE("a layer that borrows its weight registers none and completes none") {
  GradientCheck check;
  const std::uint32_t words = check.factory().add_parameter("words", 12, {.value = 1}, true);
  Linear linear(
      check.factory(),
      {.name = "head", .rows = 2, .inputs = 3, .outputs = 4, .has_bias = false, .tied_weight = words});
  const std::vector<LayerRecord> layers = check.factory().take_layers();
  REQUIRE(layers.size() == 1);
  CHECK(layers[0].parameters.empty());
  CHECK(check.factory().take_parameters().size() == 1);
}

}  // namespace lockstep::harness::linear_test
