#pragma once

// Patches of images, and pooling.
//
// Problem:   a convolution is a matrix product of patches that overlap; its backward adds where they overlap.
// Idea:      a row of patches is what one output pixel sees, [kernel, kernel, channels]. Backward gathers:
//            each input asks which outputs saw it, so nothing is added by two at once and every sum has one
//            order.
// Cost:      patches: kernel^2 / stride^2 times the image. Their sum reads and writes the image kernel^2
//            times, a tap at a time, because a loop over channels alone is what vector units can do.
// Reference: Chellapilla, Puri and Simard, "High performance convolutional neural networks for document
//            processing", 2006.

#include "validate/harness/device/kernels.h"

namespace lockstep::harness::kernels {

// patches[image, y, x, tap_y, tap_x, channel]; outside of the image is 0.
template <class T, class Executor>
void take_patches(const Executor& executor, const Convolution& shape, Tensor patches, Tensor images) {
  T* const to = patches.as<T>();
  const T* const from = images.as<const T>();
  const Convolution s = shape;
  const std::int64_t out_height = shape.output_height();
  const std::int64_t out_width = shape.output_width();
  const std::int64_t rows = shape.batch * out_height * out_width * shape.kernel * shape.kernel;
  executor.for_each_in_rows(
      rows, shape.inputs, [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t channel) {
        const std::int64_t tap_x = row % s.kernel;
        const std::int64_t tap_y = row / s.kernel % s.kernel;
        const std::int64_t pixel = row / (s.kernel * s.kernel);
        const std::int64_t x = pixel % out_width * s.stride + tap_x - s.padding;
        const std::int64_t y = pixel / out_width % out_height * s.stride + tap_y - s.padding;
        const std::int64_t image = pixel / (out_width * out_height);
        const bool is_inside = x >= 0 && x < s.width && y >= 0 && y < s.height;
        const std::int64_t place = ((image * s.height + y) * s.width + x) * s.inputs + channel;
        to[row * s.inputs + channel] = is_inside ? from[place] : T{};
      });
}

// images[...] = (first tap) or += what tap (tap_y, tap_x) of the patches holds for it.
template <class Executor>
void add_patch_tap(const Executor& executor, const Convolution& shape, Tensor images, Tensor patches,
                   std::int64_t tap_y, std::int64_t tap_x) {
  float* const to = images.as<float>();
  const float* const from = patches.as<const float>();
  const Convolution s = shape;
  const std::int64_t out_height = shape.output_height();
  const std::int64_t out_width = shape.output_width();
  const std::int64_t tap = tap_y * shape.kernel + tap_x;
  const std::int64_t patch = shape.patch();
  executor.for_each_in_rows(shape.batch * shape.height * shape.width, shape.inputs,
                            [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t pixel, std::int64_t channel) {
                              const std::int64_t x = pixel % s.width + s.padding - tap_x;
                              const std::int64_t y = pixel / s.width % s.height + s.padding - tap_y;
                              const std::int64_t image = pixel / (s.width * s.height);
                              const std::int64_t u = x / s.stride;
                              const std::int64_t v = y / s.stride;
                              // No short cuts: divisions that always run are moved out of a loop over
                              // channels.
                              const bool is_column = (x >= 0) & (u * s.stride == x) & (u < out_width);
                              const bool is_row = (y >= 0) & (v * s.stride == y) & (v < out_height);
                              const std::int64_t seer = (image * out_height + v) * out_width + u;
                              const float value =
                                  is_column & is_row ? from[seer * patch + tap * s.inputs + channel] : 0.0F;
                              float* const place = to + pixel * s.inputs + channel;
                              *place = tap == 0 ? value : *place + value;
                            });
}

// Ties go to the first in row-major order. `chosen` is the pixel, counted in its image.
template <class T, class Executor>
void max_pool(const Executor& executor, const Pooling& shape, Tensor output, Tensor chosen, Tensor input) {
  T* const to = output.as<T>();
  std::int32_t* const choice = chosen.as<std::int32_t>();
  const T* const from = input.as<const T>();
  const Pooling s = shape;
  const std::int64_t out_height = shape.output_height();
  const std::int64_t out_width = shape.output_width();
  executor.for_each_in_rows(
      shape.batch * out_height * out_width, shape.channels,
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t pixel, std::int64_t channel) {
        const std::int64_t left = pixel % out_width * s.stride - s.padding;
        const std::int64_t top = pixel / out_width % out_height * s.stride - s.padding;
        const std::int64_t image = pixel / (out_width * out_height);
        std::int64_t best = -1;
        float largest = 0;
        for (std::int64_t y = top < 0 ? 0 : top; y < top + s.kernel && y < s.height; ++y) {
          for (std::int64_t x = left < 0 ? 0 : left; x < left + s.kernel && x < s.width; ++x) {
            const float value = load(from[((image * s.height + y) * s.width + x) * s.channels + channel]);
            if (best < 0 || value > largest || value != value) {
              best = y * s.width + x;
              largest = value;
            }
          }
        }
        to[pixel * s.channels + channel] = stored<T>(largest);
        choice[pixel * s.channels + channel] = static_cast<std::int32_t>(best);
      });
}

// The first window that reaches coordinate `at` (already moved by the padding).
LOCKSTEP_DEVICE_FUNCTION inline std::int64_t first_window(std::int64_t at, std::int64_t kernel,
                                                          std::int64_t stride) {
  return at < kernel ? 0 : (at - kernel) / stride + 1;
}

template <class T, class Executor>
void max_pool_backward(const Executor& executor, const Pooling& shape, Tensor input_gradient,
                       Tensor output_gradient, Tensor chosen) {
  T* const to = input_gradient.as<T>();
  const T* const gradient = output_gradient.as<const T>();
  const std::int32_t* const choice = chosen.as<const std::int32_t>();
  const Pooling s = shape;
  const std::int64_t out_height = shape.output_height();
  const std::int64_t out_width = shape.output_width();
  executor.for_each_in_rows(
      shape.batch * shape.height * shape.width, shape.channels,
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t pixel, std::int64_t channel) {
        const std::int64_t x = pixel % s.width + s.padding;
        const std::int64_t y = pixel / s.width % s.height + s.padding;
        const std::int64_t image = pixel / (s.width * s.height);
        const std::int64_t in_image = pixel % (s.width * s.height);
        float sum = 0;
        for (std::int64_t v = first_window(y, s.kernel, s.stride); v <= y / s.stride && v < out_height; ++v) {
          for (std::int64_t u = first_window(x, s.kernel, s.stride); u <= x / s.stride && u < out_width;
               ++u) {
            const std::int64_t place = ((image * out_height + v) * out_width + u) * s.channels + channel;
            sum += choice[place] == in_image ? load(gradient[place]) : 0.0F;
          }
        }
        to[pixel * s.channels + channel] = stored<T>(sum);
      });
}

template <class T, class Executor>
void average_pool(const Executor& executor, Tensor output, Tensor input, std::int64_t pixels,
                  std::int64_t channels) {
  T* const to = output.as<T>();
  const T* const from = input.as<const T>();
  executor.for_each_in_rows(output.elements / channels, channels,
                            [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t image, std::int64_t channel) {
                              float sum = 0;
                              for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
                                sum += load(from[(image * pixels + pixel) * channels + channel]);
                              to[image * channels + channel] = stored<T>(sum / static_cast<float>(pixels));
                            });
}

template <class T, class Executor>
void average_pool_backward(const Executor& executor, Tensor input_gradient, Tensor output_gradient,
                           std::int64_t pixels, std::int64_t channels) {
  T* const to = input_gradient.as<T>();
  const T* const gradient = output_gradient.as<const T>();
  executor.for_each_in_rows(input_gradient.elements / channels, channels,
                            [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t pixel, std::int64_t channel) {
                              const float sum = load(gradient[pixel / pixels * channels + channel]);
                              to[pixel * channels + channel] = stored<T>(sum / static_cast<float>(pixels));
                            });
}

}  // namespace lockstep::harness::kernels
