#pragma once

// A convolution's operands in the terms of a library that describes each by its sizes.
//
// Problem:   cuDNN takes four sizes as int in the order of NCHW whatever the order in memory, and a mistake
//            in them shows on a GPU alone.
// Idea:      the sizes are a pure function, and so is where an element of these sizes lies in memory: the
//            tests convolve by them on a CPU.
// Errors:    ConfigError where a size is beyond what such a library takes.

#include <cstdint>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

// Stored [batch, height, width, channels]. Weights are images too, of `outputs` kernels.
struct ImageLayout {
  int batch = 0;
  int channels = 0;
  int height = 0;
  int width = 0;

  std::int64_t elements() const { return static_cast<std::int64_t>(batch) * channels * height * width; }
  std::int64_t index_of(std::int64_t image, std::int64_t channel, std::int64_t row,
                        std::int64_t column) const {
    return ((image * height + row) * width + column) * channels + channel;
  }
};

struct ConvolutionLayout {
  ImageLayout input;
  ImageLayout weight;
  ImageLayout output;
  int stride = 1;
  int padding = 0;
};

ConvolutionLayout convolution_layout(const Convolution& shape);

}  // namespace lockstep::harness
