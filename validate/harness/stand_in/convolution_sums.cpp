#include "validate/harness/stand_in/convolution_sums.h"

namespace lockstep::harness::stand_in {
namespace {

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

// to[i] += factor * from[i]
void add_scaled(float* to, float factor, const float* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

// function(input pixel) if the tap sees one from this output.
template <class Function>
void at_input_of(const ConvolutionSizes& s, std::int64_t image, std::int64_t row, std::int64_t column,
                 std::int64_t tap, Function function) {
  const std::int64_t y = row * s.stride_height - s.padding_height + tap / s.kernel_width;
  const std::int64_t x = column * s.stride_width - s.padding_width + tap % s.kernel_width;
  if (y >= 0 && y < s.height && x >= 0 && x < s.width)
    function((image * s.height + y) * s.width + x);
}

// function(output pixel, tap, input pixel)
template <class Function>
void for_each_tap(const ConvolutionSizes& s, TapOrder order, Function function) {
  const std::int64_t taps = s.kernel_height * s.kernel_width;
  const std::int64_t pixels = s.batch * s.output_height() * s.output_width();
  const std::int64_t count = pixels * taps;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = order == TapOrder::forward ? i : count - 1 - i;
    const std::int64_t pixel = place / taps;
    const std::int64_t image = pixel / (s.output_height() * s.output_width());
    at_input_of(s, image, pixel / s.output_width() % s.output_height(), pixel % s.output_width(),
                place % taps, [&](std::int64_t input) { function(pixel, place % taps, input); });
  }
}

// [taps, inputs, outputs] of [outputs, taps, inputs]
Values outputs_last(const ConvolutionSizes& s, const Values& weight) {
  const std::int64_t patch = s.kernel_height * s.kernel_width * s.inputs;
  Values turned(weight.size());
  for (std::int64_t output = 0; output < s.outputs; ++output) {
    for (std::int64_t i = 0; i < patch; ++i)
      turned[size(i * s.outputs + output)] = weight[size(output * patch + i)];
  }
  return turned;
}

}  // namespace

Values convolved(const ConvolutionSizes& s, TapOrder order, const Values& input, const Values& weight) {
  const Values turned = outputs_last(s, weight);
  Values sums(size(s.output_elements()));
  for_each_tap(s, order, [&](std::int64_t output, std::int64_t tap, std::int64_t pixel) {
    for (std::int64_t channel = 0; channel < s.inputs; ++channel)
      add_scaled(sums.data() + output * s.outputs, input[size(pixel * s.inputs + channel)],
                 turned.data() + (tap * s.inputs + channel) * s.outputs, s.outputs);
  });
  return sums;
}

Values input_gradient_of(const ConvolutionSizes& s, TapOrder order, const Values& output_gradient,
                         const Values& weight) {
  const std::int64_t taps = s.kernel_height * s.kernel_width;
  Values sums(size(s.input_elements()));
  for_each_tap(s, order, [&](std::int64_t output, std::int64_t tap, std::int64_t pixel) {
    for (std::int64_t channel = 0; channel < s.outputs; ++channel)
      add_scaled(sums.data() + pixel * s.inputs, output_gradient[size(output * s.outputs + channel)],
                 weight.data() + (channel * taps + tap) * s.inputs, s.inputs);
  });
  return sums;
}

Values weight_gradient_of(const ConvolutionSizes& s, TapOrder order, const Values& output_gradient,
                          const Values& input) {
  const std::int64_t taps = s.kernel_height * s.kernel_width;
  Values sums(size(s.weight_elements()));
  for_each_tap(s, order, [&](std::int64_t output, std::int64_t tap, std::int64_t pixel) {
    for (std::int64_t channel = 0; channel < s.outputs; ++channel)
      add_scaled(sums.data() + (channel * taps + tap) * s.inputs,
                 output_gradient[size(output * s.outputs + channel)], input.data() + pixel * s.inputs,
                 s.inputs);
  });
  return sums;
}

}  // namespace lockstep::harness::stand_in
