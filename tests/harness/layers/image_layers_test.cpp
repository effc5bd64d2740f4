#include "validate/harness/layers/image_layers.h"

#include "tests/harness/layers/gradient_check.h"

namespace lockstep::harness::image_layers_test {

TEST_CASE(
    "a convolution's gradients are those of its loss: 3x3 with a stride, 1x1, and 7x7 on an odd image") {
  const std::vector<Convolution> shapes = {{.batch = 2,
                                            .height = 6,
                                            .width = 5,
                                            .inputs = 3,
                                            .outputs = 4,
                                            .kernel = 3,
                                            .stride = 2,
                                            .padding = 1},
                                           {.batch = 2, .height = 4, .width = 4, .inputs = 5, .outputs = 3},
                                           {.batch = 1,
                                            .height = 9,
                                            .width = 9,
                                            .inputs = 2,
                                            .outputs = 3,
                                            .kernel = 7,
                                            .stride = 2,
                                            .padding = 3}};
  for (const Convolution& shape : shapes) {
    GradientCheck check;
    Convolution2d convolution(check.factory(), "conv", shape);
    check.check(
        convolution,
        normal_values(static_cast<std::size_t>(shape.batch * shape.height * shape.width * shape.inputs), 1));
  }
}

// Numbers apart by 0.05, so that no finite difference makes another one the largest.
TEST_CASE("max pooling passes each gradient to the largest of its window, also where windows overlap") {
  constexpr std::size_t count = 2 * 6 * 6 * 3;  // 216 = 2^3 3^3, which shares no divisor with 85
  std::vector<float> input(count);
  for (std::size_t index = 0; index < count; ++index)
    input[index] = 0.05F * static_cast<float>(index * 85 % count);
  GradientCheck check;
  MaxPool pool(check.factory(), "maxpool",
               {.batch = 2, .height = 6, .width = 6, .channels = 3, .kernel = 3, .stride = 2, .padding = 1});
  check.check(pool, input);
}

TEST_CASE("average pooling spreads each gradient over all pixels") {
  GradientCheck check;
  GlobalAveragePool pool(check.factory(), "avgpool", {.batch = 3, .pixels = 9, .channels = 4});
  check.check(pool, normal_values(3 * 9 * 4, 1));
}

}  // namespace lockstep::harness::image_layers_test
