// Stacks of linear layers, by their widths.

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tests/models/instance.h"

namespace lockstep::perceptron_test {

TEST_CASE("a perceptron is its products, and hands no gradient to the data") {
  const Model model = model_from(R"({"family": "perceptron", "inputs": 1024, "widths": [4096, 512], "rows": 8,
      "splits": ["column", "row"], "activation": true})");
  CHECK(parameter_count(model) == 1024 * 4096 + 4096 + 4096 * 512 + 512);
  REQUIRE(model.layers.size() == 3);
  CHECK(std::get<GemmShape>(*model.layers[0].product) == GemmShape{.m = 8, .n = 4096, .k = 1024});
  CHECK(model.layers[0].backward_input_flops == 0);
  CHECK(model.layers[2].split == TensorSplit::row);
  CHECK(model.layers[2].backward_input_flops == 2 * 8 * 4096 * 512);
  CHECK(model.input_bytes == 4 * 8 * 1024);
}

TEST_CASE("a perceptron of no widths, or with splits that do not match them, is an error") {
  CHECK_THROWS_AS(model_from(R"({"family": "perceptron", "inputs": 4, "widths": []})"), ConfigError);
  CHECK_THROWS_AS(model_from(R"({"family": "perceptron", "inputs": 4, "widths": [4], "splits": []})"),
                  ConfigError);
  CHECK_THROWS_AS(model_from(R"({"family": "perceptron", "inputs": 4, "widths": [4], "splits": ["rows"]})"),
                  ConfigError);
  CHECK_THROWS_AS(model_from(R"({"family": "perceptron", "inputs": 4, "widths": [0]})"), ConfigError);
}

}  // namespace lockstep::perceptron_test
