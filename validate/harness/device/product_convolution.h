#pragma once

// Convolutions as products of matrices, a group of images at a time.
//
// Problem:   a device without a library of convolutions still multiplies matrices.
// Idea:      a row of patches is what an output pixel sees (image_kernels.h); patches times weights are the outputs. As
//            many images are taken at once as keep their patches in a cache. Convolutions of single pixels need no
//            patches.
// Invariant: gradients of inputs are summed in fp32 until all taps are in; those of weights from group to group.
// Cost:      a product of [pixels, outputs, patch] each way, and the patches of a group.

#include <algorithm>
#include <cstdint>

#include "validate/harness/device/activation_type.h"
#include "validate/harness/device/device.h"
#include "validate/harness/device/image_kernels.h"
#include "validate/harness/device/scratch_tensors.h"

namespace lockstep::harness {

template <class Executor>
class ProductConvolution {
 public:
  ProductConvolution(Device& device, const Executor& executor, ScratchTensors& scratch)
      : device_(device), executor_(executor), scratch_(scratch) {}

  void forward(const Convolution& shape, Tensor output, Tensor input, Tensor weight) {
    for_each_group(shape, [&](const Convolution& group, std::int64_t first) {
      const std::int64_t pixels = pixels_of(group);
      const Tensor patches = patches_of(group, images_of(group, input, first));
      device_.matmul({.a = {.tensor = patches},
                      .b = {.tensor = weight, .is_transposed = true},
                      .output = {.tensor = outputs_of(group, output, first)},
                      .rows = pixels,
                      .columns = group.outputs,
                      .inner = group.patch()});
    });
  }

  void input_gradient(const Convolution& shape, Tensor result, Tensor output_gradient, Tensor weight) {
    for_each_group(shape, [&](const Convolution& group, std::int64_t first) {
      const std::int64_t pixels = pixels_of(group);
      const Tensor images = images_of(group, result, first);
      const Tensor patches = is_product(group)
                                 ? images
                                 : scratch_.at_least(Purpose::patches, pixels * group.patch(), Type::fp32);
      device_.matmul({.a = {.tensor = outputs_of(group, output_gradient, first)},
                      .b = {.tensor = weight},
                      .output = {.tensor = patches},
                      .rows = pixels,
                      .columns = group.patch(),
                      .inner = group.outputs});
      if (!is_product(group))
        add_patches(group, images, patches);
    });
  }

  void weight_gradient(const Convolution& shape, Tensor result, Tensor output_gradient, Tensor input,
                       bool accumulates) {
    for_each_group(shape, [&](const Convolution& group, std::int64_t first) {
      const std::int64_t pixels = pixels_of(group);
      const Tensor patches = patches_of(group, images_of(group, input, first));
      device_.matmul({.a = {.tensor = outputs_of(group, output_gradient, first), .is_transposed = true},
                      .b = {.tensor = patches},
                      .output = {.tensor = result},
                      .rows = group.outputs,
                      .columns = group.patch(),
                      .inner = pixels,
                      .accumulates = accumulates || first > 0});
    });
  }

 private:
  using Purpose = ScratchTensors::Purpose;

  // Patches of a group of images: enough rows for a product to be fast, little enough for a cache.
  static constexpr std::int64_t group_elements = 1 << 20;

  // Its pixels already are its patches.
  static bool is_product(const Convolution& shape) {
    return shape.kernel == 1 && shape.stride == 1 && shape.padding == 0;
  }
  static std::int64_t pixels_of(const Convolution& shape) {
    return shape.batch * shape.output_height() * shape.output_width();
  }
  static Tensor images_of(const Convolution& group, Tensor images, std::int64_t first) {
    const std::int64_t image = group.height * group.width * group.inputs;
    return images.part(first * image, group.batch * image);
  }
  static Tensor outputs_of(const Convolution& group, Tensor outputs, std::int64_t first) {
    const std::int64_t image = group.output_height() * group.output_width() * group.outputs;
    return outputs.part(first * image, group.batch * image);
  }

  // function(shape of the group, its first image)
  template <class Function>
  void for_each_group(const Convolution& shape, Function function) {
    const std::int64_t image = shape.output_height() * shape.output_width() * shape.patch();
    const std::int64_t images =
        is_product(shape) ? shape.batch : std::max<std::int64_t>(1, group_elements / image);
    for (std::int64_t first = 0; first < shape.batch; first += images) {
      Convolution group = shape;
      group.batch = std::min(images, shape.batch - first);
      function(group, first);
    }
  }

  Tensor patches_of(const Convolution& group, Tensor images) {
    if (is_product(group))
      return images;
    const Tensor patches = scratch_.at_least(Purpose::patches, pixels_of(group) * group.patch(), images.type);
    with_activation_type(images.type, [&](auto element) {
      kernels::take_patches<decltype(element)>(executor_, group, patches, images);
    });
    return patches;
  }

  // In fp32 until all taps are in.
  void add_patches(const Convolution& group, Tensor images, Tensor patches) {
    const bool is_fp32 = images.type == Type::fp32;
    const Tensor sums = is_fp32 ? images : scratch_.at_least(Purpose::sums, images.elements, Type::fp32);
    for (std::int64_t tap = 0; tap < group.kernel * group.kernel; ++tap)
      kernels::add_patch_tap(executor_, group, sums, patches, tap / group.kernel, tap % group.kernel);
    if (!is_fp32)
      device_.cast(images, sums);
  }

  Device& device_;  // which multiplies
  const Executor& executor_;
  ScratchTensors& scratch_;
};

}  // namespace lockstep::harness
