#pragma once

// Convolutions of images stored [batch, height, width, channels], straight from their definition.
//
// Problem:   the convolutions a fake cuDNN computes must not share the harness's patches, which they test.
// Idea:      the pairs of an output pixel and the input pixel a tap of the kernel sees there are walked in
//            one order or its reverse; at each, channels are multiplied. Forward adds to outputs, by data to
//            inputs, by weights to the tap. The two orders are two algorithms: the same numbers but for their
//            last bits.
// Cost:      one product a tap, pixel and pair of channels; inner loops run along channels.

#include <cstdint>
#include <vector>

namespace lockstep::harness::stand_in {

struct ConvolutionSizes {
  std::int64_t batch = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t kernel_height = 1;
  std::int64_t kernel_width = 1;
  std::int64_t stride_height = 1;
  std::int64_t stride_width = 1;
  std::int64_t padding_height = 0;
  std::int64_t padding_width = 0;

  std::int64_t output_height() const {
    return (height + 2 * padding_height - kernel_height) / stride_height + 1;
  }
  std::int64_t output_width() const { return (width + 2 * padding_width - kernel_width) / stride_width + 1; }
  std::int64_t input_elements() const { return batch * height * width * inputs; }
  std::int64_t output_elements() const { return batch * output_height() * output_width() * outputs; }
  std::int64_t weight_elements() const { return outputs * kernel_height * kernel_width * inputs; }
};

enum class TapOrder : std::uint8_t { forward, reverse };

using Values = std::vector<float>;

Values convolved(const ConvolutionSizes& sizes, TapOrder order, const Values& input, const Values& weight);
Values input_gradient_of(const ConvolutionSizes& sizes, TapOrder order, const Values& output_gradient,
                         const Values& weight);
Values weight_gradient_of(const ConvolutionSizes& sizes, TapOrder order, const Values& output_gradient,
                          const Values& input);

}  // namespace lockstep::harness::stand_in
