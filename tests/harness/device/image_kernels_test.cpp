#include "validate/harness/device/image_kernels.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/harness/device/device_numbers.h"
#include "tests/harness/device/tested_device.h"

namespace lockstep::harness::image_kernels_test {

struct Gradients {
  Numbers output;
  Numbers input_gradient;
  Numbers weight_gradient;
};

// All three by their definition: every product that a convolution is made of, visited once.
Gradients by_definition(const Convolution& c, const Numbers& input, const Numbers& weight,
                        const Numbers& slopes) {
  const std::int64_t out_height = c.output_height();
  const std::int64_t out_width = c.output_width();
  Gradients result = {Numbers(slopes.size()), Numbers(input.size()), Numbers(weight.size())};
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (std::int64_t v = 0; v < out_height; ++v)
      for (std::int64_t u = 0; u < out_width; ++u)
        for (std::int64_t o = 0; o < c.outputs; ++o)
          for (std::int64_t b = 0; b < c.kernel; ++b)
            for (std::int64_t a = 0; a < c.kernel; ++a)
              for (std::int64_t i = 0; i < c.inputs; ++i) {
                const std::int64_t y = v * c.stride + b - c.padding;
                const std::int64_t x = u * c.stride + a - c.padding;
                if (y < 0 || y >= c.height || x < 0 || x >= c.width)
                  continue;
                const auto out =
                    static_cast<std::size_t>(((n * out_height + v) * out_width + u) * c.outputs + o);
                const auto in = static_cast<std::size_t>(((n * c.height + y) * c.width + x) * c.inputs + i);
                const auto w = static_cast<std::size_t>(((o * c.kernel + b) * c.kernel + a) * c.inputs + i);
                result.output[out] += input[in] * weight[w];
                result.input_gradient[in] += slopes[out] * weight[w];
                result.weight_gradient[w] += slopes[out] * input[in];
              }
  return result;
}

void check_convolution(Device& device, const Convolution& c, Type type) {
  CAPTURE(c.kernel);
  CAPTURE(c.stride);
  CAPTURE(static_cast<int>(type));
  const std::int64_t inputs = c.batch * c.height * c.width * c.inputs;
  const std::int64_t outputs = c.batch * c.output_height() * c.output_width() * c.outputs;
  const std::int64_t weights = c.outputs * c.patch();
  const Buffer input = on_device(device, draws(inputs, 31), type);
  const Buffer weight = on_device(device, draws(weights, 32), type);
  const Buffer slopes = on_device(device, draws(outputs, 33), type);
  const Gradients expected =
      by_definition(c, numbers_of(device, input), numbers_of(device, weight), numbers_of(device, slopes));
  // A sum of k products below 1 is off by at most k roundings of k, and then is stored.
  const auto error = [&](std::int64_t terms, const Numbers& sums, Type as) {
    const auto k = static_cast<double>(terms);
    return largest_of(sums) * rounding(as) + k * k * rounding(Type::fp32);
  };
  const Buffer output = nothing_yet(device, outputs, type);
  device.convolution(c, output.tensor(), input.tensor(), weight.tensor());
  CHECK(largest_difference(numbers_of(device, output), expected.output) <=
        error(c.patch(), expected.output, type));

  const Buffer input_gradient = nothing_yet(device, inputs, type);
  device.convolution_input_gradient(c, input_gradient.tensor(), slopes.tensor(), weight.tensor());
  CHECK(largest_difference(numbers_of(device, input_gradient), expected.input_gradient) <=
        error(c.kernel * c.kernel * c.outputs, expected.input_gradient, type));

  const Buffer weight_gradient = nothing_yet(device, weights);
  const std::int64_t terms = outputs / c.outputs;
  for (const bool accumulates : {false, true}) {
    device.convolution_weight_gradient(c, weight_gradient.tensor(), slopes.tensor(), input.tensor(),
                                       accumulates);
    Numbers sums = expected.weight_gradient;
    for (double& sum : sums) sum *= accumulates ? 2 : 1;
    CHECK(largest_difference(numbers_of(device, weight_gradient), sums) <=
          error(2 * terms, sums, Type::fp32));
  }
}

constexpr Pooling poolings[] = {
    {.batch = 2, .height = 7, .width = 8, .channels = 3, .kernel = 3, .stride = 2, .padding = 1},
    {.batch = 1, .height = 6, .width = 6, .channels = 17, .kernel = 2, .stride = 2, .padding = 0},
    {.batch = 1, .height = 8, .width = 5, .channels = 1, .kernel = 2, .stride = 3, .padding = 0},
    {.batch = 1, .height = 5, .width = 5, .channels = 2, .kernel = 3, .stride = 1, .padding = 1},
};

// All different, and further apart than two steps of a difference: the chosen input never changes.
Numbers spread(std::int64_t count) {
  Numbers numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<double>(i * 7919 % numbers.size()) * 0x1p-5;
  return numbers;
}

Numbers max_pooled(const Pooling& p, const Numbers& input) {
  Numbers output;
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t v = 0; v < p.output_height(); ++v)
      for (std::int64_t u = 0; u < p.output_width(); ++u)
        for (std::int64_t c = 0; c < p.channels; ++c) {
          double largest = -HUGE_VAL;
          for (std::int64_t y = v * p.stride - p.padding; y < v * p.stride - p.padding + p.kernel; ++y)
            for (std::int64_t x = u * p.stride - p.padding; x < u * p.stride - p.padding + p.kernel; ++x) {
              if (y >= 0 && y < p.height && x >= 0 && x < p.width)
                largest = std::max(
                    largest,
                    input[static_cast<std::size_t>(((n * p.height + y) * p.width + x) * p.channels + c)]);
            }
          output.push_back(largest);
        }
  return output;
}

TEST_CASE("a convolution and its gradients are the seven loops of their definition") {
  const auto device = make_tested_device();
  const Convolution shapes[] = {
      {.batch = 3, .height = 5, .width = 6, .inputs = 4, .outputs = 7},
      {.batch = 2,
       .height = 6,
       .width = 5,
       .inputs = 3,
       .outputs = 4,
       .kernel = 3,
       .stride = 1,
       .padding = 1},
      {.batch = 2,
       .height = 7,
       .width = 8,
       .inputs = 3,
       .outputs = 4,
       .kernel = 3,
       .stride = 2,
       .padding = 1},
      {.batch = 2,
       .height = 7,
       .width = 6,
       .inputs = 5,
       .outputs = 2,
       .kernel = 1,
       .stride = 2,
       .padding = 0},
      {.batch = 1,
       .height = 9,
       .width = 11,
       .inputs = 3,
       .outputs = 2,
       .kernel = 7,
       .stride = 2,
       .padding = 3},
      {.batch = 2,
       .height = 8,
       .width = 9,
       .inputs = 2,
       .outputs = 3,
       .kernel = 2,
       .stride = 3,
       .padding = 0},
      {.batch = 1,
       .height = 1,
       .width = 1,
       .inputs = 20,
       .outputs = 3,
       .kernel = 3,
       .stride = 1,
       .padding = 1},
  };
  for (const Convolution& shape : shapes) {
    for (const Type type : all_types) check_convolution(*device, shape, type);
  }
}

TEST_CASE("a batch whose patches are taken in several groups is the batch all the same") {
  // 32 * 32 pixels * 72 numbers a patch: 14 images are 2^20 numbers.
  const auto device = make_tested_device();
  check_convolution(*device,
                    {.batch = 17,
                     .height = 32,
                     .width = 32,
                     .inputs = 8,
                     .outputs = 3,
                     .kernel = 3,
                     .stride = 1,
                     .padding = 1},
                    Type::fp32);
}

TEST_CASE("max pooling takes the largest in its window, in every type") {
  const auto device = make_tested_device();
  for (const Pooling& shape : poolings) {
    for (const Type type : all_types) {
      const Buffer input =
          on_device(*device, draws(shape.batch * shape.height * shape.width * shape.channels, 34), type);
      const Numbers expected = max_pooled(shape, numbers_of(*device, input));
      const auto outputs = static_cast<std::int64_t>(expected.size());
      const Buffer output = nothing_yet(*device, outputs, type);
      const Buffer chosen = nothing_yet(*device, outputs, Type::int32);
      device->max_pool(shape, output.tensor(), chosen.tensor(), input.tensor());
      CHECK(numbers_of(*device, output) == expected);
    }
  }
}

TEST_CASE("the gradient of max pooling is that of its differences") {
  const auto device = make_tested_device();
  for (const Pooling& shape : poolings) {
    const std::int64_t inputs = shape.batch * shape.height * shape.width * shape.channels;
    const std::int64_t outputs = shape.batch * shape.output_height() * shape.output_width() * shape.channels;
    const Numbers x = spread(inputs);
    const Numbers weights = rounded(draws(outputs, 35), Type::fp32);
    const Buffer output = nothing_yet(*device, outputs);
    const Buffer chosen = nothing_yet(*device, outputs, Type::int32);
    const auto forward = [&](const Numbers& numbers) {
      device->max_pool(shape, output.tensor(), chosen.tensor(), on_device(*device, numbers).tensor());
      return numbers_of(*device, output);
    };
    const Numbers expected = differences(forward, x, weights);
    forward(x);
    const Buffer slopes = nothing_yet(*device, inputs);
    device->max_pool_backward(shape, slopes.tensor(), on_device(*device, weights).tensor(), chosen.tensor());
    // Linear where it is smooth, and exact: an input is in at most 9 windows.
    CHECK(largest_difference(numbers_of(*device, slopes), expected) <= 9 * 9 * rounding(Type::fp32));
  }
}

TEST_CASE("of equal numbers the first in its window is chosen and alone gets the gradient") {
  const auto device = make_tested_device();
  const Pooling shape = {.batch = 1, .height = 2, .width = 2, .channels = 1, .kernel = 2, .stride = 2};
  const Buffer output = nothing_yet(*device, 1);
  const Buffer chosen = nothing_yet(*device, 1, Type::int32);
  device->max_pool(shape, output.tensor(), chosen.tensor(),
                   on_device(*device, {-1, -0.5, -0.5, -0.5}).tensor());
  CHECK(numbers_of(*device, chosen) == Numbers{1});
  const Buffer slopes = nothing_yet(*device, 4);
  device->max_pool_backward(shape, slopes.tensor(), on_device(*device, {3}).tensor(), chosen.tensor());
  CHECK(numbers_of(*device, slopes) == Numbers{0, 3, 0, 0});
}

TEST_CASE("average pooling is the mean of all pixels, and its gradient their equal share") {
  const auto device = make_tested_device();
  const std::int64_t pixels = 49;
  for (const Type type : all_types) {
    const Buffer input = on_device(*device, draws(2 * pixels * 5, 36), type);
    const Numbers x = numbers_of(*device, input);
    const Buffer output = nothing_yet(*device, 10, type);
    device->average_pool(output.tensor(), input.tensor(), pixels, 5);
    Numbers expected(10);
    for (std::size_t i = 0; i < x.size(); ++i) expected[i / 245 * 5 + i % 5] += x[i] / 49;
    CHECK(largest_difference(numbers_of(*device, output), expected) <=
          largest_of(expected) * rounding(type) + 50 * rounding(Type::fp32));

    const Buffer gradient = on_device(*device, draws(10, 37), type);
    device->average_pool_backward(input.tensor(), gradient.tensor(), pixels, 5);
    Numbers shares(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      shares[i] = numbers_of(*device, gradient)[i / 245 * 5 + i % 5] / 49;
    CHECK(largest_difference(numbers_of(*device, input), shares) <= tolerance(shares, type, 1));
  }
}

}  // namespace lockstep::harness::image_kernels_test
