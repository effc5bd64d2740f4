#include "validate/harness/device/convolution_layout.h"

#include <fmt/format.h>

#include <limits>

#include "sim/base/error.h"

namespace lockstep::harness {
namespace {

int as_int(std::int64_t size, const char* what) {
  if (size < 0 || size > std::numeric_limits<int>::max())
    throw ConfigError(
        fmt::format("a convolution's {} is {}; valid: 0 to {}", what, size, std::numeric_limits<int>::max()));
  return static_cast<int>(size);
}

}  // namespace

ConvolutionLayout convolution_layout(const Convolution& shape) {
  const int batch = as_int(shape.batch, "batch");
  const int inputs = as_int(shape.inputs, "number of inputs");
  const int outputs = as_int(shape.outputs, "number of outputs");
  const int kernel = as_int(shape.kernel, "kernel");
  return {.input = {batch, inputs, as_int(shape.height, "height"), as_int(shape.width, "width")},
          .weight = {outputs, inputs, kernel, kernel},
          .output = {batch, outputs, as_int(shape.output_height(), "output height"),
                     as_int(shape.output_width(), "output width")},
          .stride = as_int(shape.stride, "stride"),
          .padding = as_int(shape.padding, "padding")};
}

}  // namespace lockstep::harness
