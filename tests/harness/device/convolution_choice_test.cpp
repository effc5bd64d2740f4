#include "validate/harness/device/convolution_choice.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace lockstep::harness::convolution_choice_test {

const std::vector<ConvolutionChoice> choices = {
    {.shape = {.batch = 32,
               .height = 56,
               .width = 57,
               .inputs = 64,
               .outputs = 65,
               .kernel = 3,
               .stride = 2,
               .padding = 1},
     .type = Type::bf16,
     .direction = ConvolutionDirection::weight_gradient,
     .algorithm = "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1",
     .math = "CUDNN_TENSOR_OP_MATH",
     .workspace_bytes = 3'000'000'000},
    {.shape = {.batch = 1, .height = 2, .width = 3, .inputs = 4, .outputs = 5}}};

TEST_CASE("choices of convolutions are read as they were told") {
  const std::vector<ConvolutionChoice> read = convolution_choices_in(to_text(choices));
  REQUIRE(read.size() == 2);
  CHECK(to_text(read) == to_text(choices));
  CHECK(read[0].shape.width == 57);
  CHECK(read[0].shape.padding == 1);
  CHECK(read[0].type == Type::bf16);
  CHECK(read[0].direction == ConvolutionDirection::weight_gradient);
  CHECK(read[0].algorithm == choices[0].algorithm);
  CHECK(read[0].math == choices[0].math);
  CHECK(read[0].workspace_bytes == 3'000'000'000);
  CHECK(read[1].algorithm.empty());
  CHECK(convolution_choices_in("[]").empty());
}

TEST_CASE("in a file a choice names its algorithm, and none is null") {
  const nlohmann::json json = nlohmann::json::parse(to_text(choices));
  CHECK(json[0]["algorithm"] == "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1");
  CHECK(json[0]["direction"] == "weight_gradient");
  CHECK(json[0]["precision"] == "bf16");
  CHECK(json[1]["algorithm"].is_null());
}

TEST_CASE("a text that is no list of choices is told, not followed") {
  CHECK_THROWS_AS(convolution_choices_in("no list"), EnvironmentError);
  CHECK_THROWS_AS(convolution_choices_in("[{}]"), EnvironmentError);
  std::string renamed = to_text(choices);
  renamed.replace(renamed.find("weight_gradient"), 15, "sideways");
  CHECK_THROWS_WITH_AS(convolution_choices_in(renamed),
                       "rank 0's choice of convolutions names \"sideways\", which is not known here",
                       EnvironmentError);
}

}  // namespace lockstep::harness::convolution_choice_test
