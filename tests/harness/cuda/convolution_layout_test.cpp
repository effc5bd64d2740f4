#include "validate/harness/device/convolution_layout.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "sim/base/error.h"
#include "validate/harness/device/cpu_device.h"

namespace lockstep::harness::convolution_layout_test {

// Small whole numbers: every sum is exact.
std::vector<float> whole_numbers(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random() % 7) - 3.0F;
  return values;
}

Tensor view_of(std::vector<float>& values) {
  return {values.data(), static_cast<std::int64_t>(values.size()), Type::fp32};
}

// One output of a cross-correlation, operands found by their layouts.
float output_at(const ConvolutionLayout& layout, const std::vector<float>& input,
                const std::vector<float>& weight, int image, int output, int row, int column) {
  float sum = 0;
  for (int channel = 0; channel < layout.weight.channels; ++channel) {
    for (int y = 0; y < layout.weight.height; ++y) {
      for (int x = 0; x < layout.weight.width; ++x) {
        const int in_row = row * layout.stride - layout.padding + y;
        const int in_column = column * layout.stride - layout.padding + x;
        if (in_row < 0 || in_row >= layout.input.height || in_column < 0 || in_column >= layout.input.width)
          continue;
        sum += input[static_cast<std::size_t>(layout.input.index_of(image, channel, in_row, in_column))] *
               weight[static_cast<std::size_t>(layout.weight.index_of(output, channel, y, x))];
      }
    }
  }
  return sum;
}

std::vector<float> convolved(const ConvolutionLayout& layout, const std::vector<float>& input,
                             const std::vector<float>& weight) {
  std::vector<float> outputs(static_cast<std::size_t>(layout.output.elements()));
  for (int image = 0; image < layout.output.batch; ++image) {
    for (int output = 0; output < layout.output.channels; ++output) {
      for (int row = 0; row < layout.output.height; ++row) {
        for (int column = 0; column < layout.output.width; ++column)
          outputs[static_cast<std::size_t>(layout.output.index_of(image, output, row, column))] =
              output_at(layout, input, weight, image, output, row, column);
      }
    }
  }
  return outputs;
}

TEST_CASE("operands described by their layouts convolve as the CPU convolves") {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  // ResNet-50's kinds: 7x7 by 2 with padding 3, 3x3, 3x3 by 2, 1x1, 1x1 by 2; sizes that differ in all
  // directions.
  const std::vector<Convolution> shapes = {
      {.batch = 2,
       .height = 9,
       .width = 11,
       .inputs = 3,
       .outputs = 4,
       .kernel = 7,
       .stride = 2,
       .padding = 3},
      {.batch = 2,
       .height = 5,
       .width = 4,
       .inputs = 3,
       .outputs = 2,
       .kernel = 3,
       .stride = 1,
       .padding = 1},
      {.batch = 1,
       .height = 6,
       .width = 7,
       .inputs = 2,
       .outputs = 5,
       .kernel = 3,
       .stride = 2,
       .padding = 1},
      {.batch = 3, .height = 4, .width = 3, .inputs = 5, .outputs = 2},
      {.batch = 1, .height = 6, .width = 5, .inputs = 4, .outputs = 3, .kernel = 1, .stride = 2}};
  for (const Convolution& shape : shapes) {
    const ConvolutionLayout layout = convolution_layout(shape);
    std::vector<float> input = whole_numbers(layout.input.elements(), 1);
    std::vector<float> weight = whole_numbers(layout.weight.elements(), 2);
    std::vector<float> output(static_cast<std::size_t>(layout.output.elements()));
    cpu->convolution(shape, view_of(output), view_of(input), view_of(weight));
    CHECK(output == convolved(layout, input, weight));
    CHECK(layout.weight.elements() == shape.outputs * shape.patch());
  }
}

TEST_CASE("a size that a library of 32-bit sizes cannot take is the user's mistake, and named") {
  Convolution shape{.batch = 3'000'000'000, .height = 8, .width = 8, .inputs = 3, .outputs = 8};
  CHECK_THROWS_WITH_AS(convolution_layout(shape),
                       "a convolution's batch is 3000000000; valid: 0 to 2147483647", ConfigError);
}

}  // namespace lockstep::harness::convolution_layout_test
