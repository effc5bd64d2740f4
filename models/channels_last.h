#pragma once

// Feature maps as tokens, and back.
//
// Problem:   networks between convolutions and transformers norm and multiply each pixel's channels by themselves.
// Idea:      a pixel is a token as wide as the map has channels. A permutation is a view: no kernel, the same tensor.
//            Where the first norm of a network finds channels first in memory, it copies them.
// Invariant: cuDNN leaves channels last what comes in so (aten/src/ATen/native/ConvUtils.h,
//            cudnn_conv_suggest_memory_format, depthwise convolutions too), and so do kernels that work element by
//            element: behind its first norm such a network copies no more.
// Reference: torch.layer_norm (aten/src/ATen/native/cuda/layer_norm_kernel.cu: input.expect_contiguous()).

#include <string>

#include "models/image_network.h"
#include "models/token_network.h"

namespace lockstep {

inline Tokens tokens_of(const FeatureMap& map) {
  return {.activation = map.activation, .count = map.height * map.width, .width = map.channels};
}

// `extent` has as many pixels as there are tokens.
inline FeatureMap map_of(const Tokens& tokens, const Extent& extent) {
  return {.activation = tokens.activation,
          .channels = tokens.width,
          .height = extent.height,
          .width = extent.width};
}

// A norm's copy of a map whose channels stand first. What backward keeps is the map as it came: it copies that once
// more, and where a convolution is before the norm also what it hands back.
inline void add_channels_last_copy(ModelBuilder& builder, const std::string& name, const FeatureMap& map,
                                   int backward_copies) {
  const std::int64_t copied = 2 * map.activation.elements;
  builder.add_layer({.name = name,
                     .forward_elements = copied,
                     .backward_elements = backward_copies * copied,
                     .pointwise_elements = map.activation.elements,
                     .backward_kernels = backward_copies},
                    {});
}

}  // namespace lockstep
