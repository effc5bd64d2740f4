// EfficientNet B0 to B7, as torchvision/models/efficientnet.py (Tan and Le 1905.11946, table 1).
//
// Keys: "width_percent" and "depth_percent" (the compound scaling, 100 is B0), "image_size" (224), "classes"
// (1000), "wide_squeeze" (false: NVIDIA's widese variants squeeze from the expanded channels). Percent keeps the rounding of channels and depths in integers.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "models/image_network.h"
#include "models/instance_keys.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

struct Stage {
  std::int64_t expansion;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t channels;
  std::int64_t depth;
};

constexpr std::int64_t stem_channels = 32;
constexpr std::array<Stage, 7> stages = {{{1, 3, 1, 16, 1},
                                          {6, 3, 2, 24, 2},
                                          {6, 5, 2, 40, 2},
                                          {6, 3, 2, 80, 3},
                                          {6, 5, 1, 112, 3},
                                          {6, 5, 2, 192, 4},
                                          {6, 3, 1, 320, 1}}};

struct InvertedResidual {
  std::int64_t expansion = 1;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t channels = 0;
  bool is_first = false;          // of the network: never dropped
  bool has_wide_squeeze = false;  // squeeze to a quarter of the expanded channels, not of the block's input
};

// The nearest multiple of 8, upwards if the nearest is more than 10 % too small.
std::int64_t scaled_channels(std::int64_t channels, std::int64_t width_percent) {
  const std::int64_t scaled = channels * width_percent;
  const std::int64_t rounded = std::max<std::int64_t>(8, (scaled + 400) / 800 * 8);
  return rounded * 1000 < 9 * scaled ? rounded + 8 : rounded;
}

std::int64_t scaled_depth(std::int64_t depth, std::int64_t depth_percent) {
  return (depth * depth_percent + 99) / 100;
}

FeatureMap write_activated(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                           const Convolution& convolution) {
  const FeatureMap normed = network.convolution_norm(name + ".0", name + ".1", input, convolution);
  return network.silu(name + ".2", normed);
}

FeatureMap write_squeeze_excitation(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                                    std::int64_t squeezed) {
  Convolution squeeze = same_convolution(squeezed, 1);
  Convolution excite = same_convolution(input.channels, 1);
  squeeze.bias = excite.bias = true;
  FeatureMap factors = network.global_average_pool(name + ".avgpool", input);
  factors = network.convolution(name + ".fc1", factors, squeeze);
  factors = network.silu(name + ".activation", factors);
  factors = network.convolution(name + ".fc2", factors, excite);
  factors = network.sigmoid(name + ".scale_activation", factors);
  return network.scale_channels(name + ".scale", input, factors);
}

FeatureMap write_shortcut(ImageNetwork& network, const std::string& name, const FeatureMap& path,
                          const FeatureMap& input, const InvertedResidual& block) {
  if (block.stride != 1 || input.channels != block.channels)
    return path;
  const FeatureMap kept = block.is_first ? path : network.stochastic_depth(name + ".stochastic_depth", path);
  return network.add(name + ".add", kept, input);
}

FeatureMap write_block(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                       const InvertedResidual& block) {
  const std::int64_t expanded = input.channels * block.expansion;
  Convolution depthwise = same_convolution(expanded, block.kernel, block.stride);
  depthwise.groups = expanded;
  int part = 0;
  const auto next_part = [&] { return fmt::format("{}.block.{}", name, part++); };

  network.builder().begin_block();
  FeatureMap path = input;
  if (block.expansion != 1)
    path = write_activated(network, next_part(), path, same_convolution(expanded, 1));
  path = write_activated(network, next_part(), path, depthwise);
  const std::int64_t squeezed = (block.has_wide_squeeze ? expanded : input.channels) / 4;
  path = write_squeeze_excitation(network, next_part(), path, std::max<std::int64_t>(1, squeezed));
  const std::string projection = next_part();
  path = network.convolution_norm(projection + ".0", projection + ".1", path,
                                  same_convolution(block.channels, 1));
  path = write_shortcut(network, name, path, input, block);
  network.builder().end_block();
  return path;
}

Model build_efficientnet(JsonReader& json, const ModelRequest&) {
  const std::int64_t width_percent = required_count(json, "width_percent", 400);
  const std::int64_t depth_percent = required_count(json, "depth_percent", 800);
  const bool has_wide_squeeze = flag_or(json, "wide_squeeze", false);
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork network;
  FeatureMap features =
      write_activated(network, "features.0", network.image(3, task.image_size),
                      same_convolution(scaled_channels(stem_channels, width_percent), 3, 2));
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const auto& [expansion, kernel, stride, channels, depth] = stages[stage];
    for (std::int64_t index = 0; index < scaled_depth(depth, depth_percent); ++index) {
      const std::string name = fmt::format("features.{}.{}", stage + 1, index);
      features = write_block(network, name, features,
                             {.expansion = expansion,
                              .kernel = kernel,
                              .stride = index == 0 ? stride : 1,
                              .channels = scaled_channels(channels, width_percent),
                              .is_first = stage == 0 && index == 0,
                              .has_wide_squeeze = has_wide_squeeze});
    }
  }
  features = write_activated(network, fmt::format("features.{}", stages.size() + 1), features,
                             same_convolution(4 * features.channels, 1));
  const FeatureMap pooled = network.global_average_pool("avgpool", features);
  const FeatureMap dropped = network.dropout("classifier.0", pooled);
  network.cross_entropy("loss", network.linear("classifier.1", dropped, task.classes));
  return network.finish();
}

const Registration<ModelFamily> efficientnet_registration{
    "efficientnet",
    ModelFamily{.build = build_efficientnet, .description = "EfficientNet image classifiers"}};

}  // namespace

}  // namespace lockstep
