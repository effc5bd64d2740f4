#pragma once

// Inverted residuals with squeeze and excitation: what EfficientNet and the MobileNets are made of.
//
// Idea:      a block widens its input by a 1x1 convolution, filters each channel by itself, weighs channels by what
//            they hold on average, and narrows again; families differ in widths, activations and names.
// Reference: Sandler et al. 1801.04381 (inverted residuals), Hu et al. 1709.01507 (squeeze and excitation);
//            torchvision/ops/misc.py (Conv2dNormActivation, SqueezeExcitation), models/_utils.py (_make_divisible).

#include <cstdint>
#include <string>

#include "models/image_network.h"

namespace lockstep {

enum class Nonlinearity : std::uint8_t { none, relu, relu6, silu, hardswish };

FeatureMap write_nonlinearity(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                              Nonlinearity nonlinearity);

// NAME.0 is the convolution, NAME.1 its norm, NAME.2 the activation.
FeatureMap write_convolution_block(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                                   const Convolution& convolution, Nonlinearity nonlinearity);

// The nearest multiple of 8, upwards if the nearest is more than 10 % too small.
std::int64_t scaled_channels(std::int64_t channels, std::int64_t width_percent);

struct SqueezeExcitation {
  std::int64_t channels = 0;  // 0: there is none
  Nonlinearity nonlinearity = Nonlinearity::silu;
  bool is_hard = false;  // factors are a hard sigmoid's
};

// A factor for each channel, out of their means over the map.
FeatureMap write_squeeze_excitation(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                                    const SqueezeExcitation& options);

struct InvertedResidual {
  std::int64_t expanded = 0;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t channels = 0;
  Nonlinearity nonlinearity = Nonlinearity::silu;
  SqueezeExcitation squeeze = {};
  bool has_stochastic_depth = false;

  bool has_shortcut(const FeatureMap& input) const { return stride == 1 && input.channels == channels; }
};

// Its parts are NAME.block.0, NAME.block.1, ...; it widens only where `expanded` is not the input's width.
FeatureMap write_inverted_residual(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                                   const InvertedResidual& block);

}  // namespace lockstep
