#include "models/inverted_residual.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

FeatureMap write_nonlinearity(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                              Nonlinearity nonlinearity) {
  switch (nonlinearity) {
    case Nonlinearity::none:
      return input;
    case Nonlinearity::relu:
      return network.relu(name, input);
    case Nonlinearity::relu6:
      return network.relu6(name, input);
    case Nonlinearity::silu:
      return network.silu(name, input);
    case Nonlinearity::hardswish:
      return network.hardswish(name, input);
  }
  return input;
}

FeatureMap write_convolution_block(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                                   const Convolution& convolution, Nonlinearity nonlinearity) {
  const FeatureMap normed = network.convolution_norm(name + ".0", name + ".1", input, convolution);
  return write_nonlinearity(network, name + ".2", normed, nonlinearity);
}

std::int64_t scaled_channels(std::int64_t channels, std::int64_t width_percent) {
  const std::int64_t scaled = channels * width_percent;
  const std::int64_t rounded = std::max<std::int64_t>(8, (scaled + 400) / 800 * 8);
  return rounded * 1000 < 9 * scaled ? rounded + 8 : rounded;
}

FeatureMap write_squeeze_excitation(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                                    const SqueezeExcitation& options) {
  Convolution squeeze = same_convolution(options.channels, 1);
  Convolution excite = same_convolution(input.channels, 1);
  squeeze.bias = excite.bias = true;
  FeatureMap factors = network.global_average_pool(name + ".avgpool", input);
  factors = network.convolution(name + ".fc1", factors, squeeze);
  factors = write_nonlinearity(network, name + ".activation", factors, options.nonlinearity);
  factors = network.convolution(name + ".fc2", factors, excite);
  const std::string activation = name + ".scale_activation";
  factors = options.is_hard ? network.hardsigmoid(activation, factors) : network.sigmoid(activation, factors);
  return network.scale_channels(name + ".scale", input, factors);
}

namespace {

FeatureMap write_path(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                      const InvertedResidual& block) {
  int part = 0;
  const auto next_part = [&] { return fmt::format("{}.block.{}", name, part++); };
  FeatureMap path = input;
  if (block.expanded != input.channels)
    path = write_convolution_block(network, next_part(), path, same_convolution(block.expanded, 1),
                                   block.nonlinearity);
  path = write_convolution_block(network, next_part(), path,
                                 depthwise_convolution(block.expanded, block.kernel, block.stride),
                                 block.nonlinearity);
  if (block.squeeze.channels > 0)
    path = write_squeeze_excitation(network, next_part(), path, block.squeeze);
  return write_convolution_block(network, next_part(), path, same_convolution(block.channels, 1),
                                 Nonlinearity::none);
}

}  // namespace

FeatureMap write_inverted_residual(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                                   const InvertedResidual& block) {
  network.builder().begin_block();
  FeatureMap path = write_path(network, name, input, block);
  if (block.has_shortcut(input)) {
    if (block.has_stochastic_depth)
      path = network.stochastic_depth(name + ".stochastic_depth", path);
    path = network.add(name + ".add", path, input);
  }
  network.builder().end_block();
  return path;
}

}  // namespace lockstep
