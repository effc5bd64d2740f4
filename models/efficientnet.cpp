// EfficientNet B0 to B7, as torchvision/models/efficientnet.py (Tan and Le 1905.11946, table 1).
//
// Keys: "width_percent" and "depth_percent" (the compound scaling, 100 is B0), "image_size" (224), "classes"
// (1000), "wide_squeeze" (false: NVIDIA's widese variants squeeze from the expanded channels). Percent keeps the
// rounding of channels and depths in integers.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "models/image_network.h"
#include "models/instance_keys.h"
#include "models/inverted_residual.h"
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

std::int64_t scaled_depth(std::int64_t depth, std::int64_t depth_percent) {
  return (depth * depth_percent + 99) / 100;
}

// Squeezed to a quarter of the block's input; NVIDIA's widese variants, of the expanded channels.
InvertedResidual stage_block(const Stage& stage, std::int64_t inputs, bool has_wide_squeeze) {
  const std::int64_t expanded = stage.expansion * inputs;
  const std::int64_t squeezed = (has_wide_squeeze ? expanded : inputs) / 4;
  return {.expanded = expanded,
          .kernel = stage.kernel,
          .stride = stage.stride,
          .channels = stage.channels,
          .squeeze = {.channels = std::max<std::int64_t>(1, squeezed)}};
}

// The network's first block is never dropped.
FeatureMap write_stage(ImageNetwork& network, std::size_t position, const FeatureMap& input, Stage stage,
                       bool has_wide_squeeze) {
  FeatureMap features = input;
  for (std::int64_t index = 0; index < stage.depth; ++index) {
    InvertedResidual block = stage_block(stage, features.channels, has_wide_squeeze);
    block.has_stochastic_depth = position > 1 || index > 0;
    features =
        write_inverted_residual(network, fmt::format("features.{}.{}", position, index), features, block);
    stage.stride = 1;
  }
  return features;
}

Model build_efficientnet(JsonReader& json, const ModelRequest&) {
  const std::int64_t width_percent = required_count(json, "width_percent", 400);
  const std::int64_t depth_percent = required_count(json, "depth_percent", 800);
  const bool has_wide_squeeze = flag_or(json, "wide_squeeze", false);
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork network;
  FeatureMap features = write_convolution_block(
      network, "features.0", network.image(3, task.image_size),
      same_convolution(scaled_channels(stem_channels, width_percent), 3, 2), Nonlinearity::silu);
  std::size_t position = 1;
  for (Stage stage : stages) {
    stage.channels = scaled_channels(stage.channels, width_percent);
    stage.depth = scaled_depth(stage.depth, depth_percent);
    features = write_stage(network, position++, features, stage, has_wide_squeeze);
  }
  features = write_convolution_block(network, fmt::format("features.{}", position), features,
                                     same_convolution(4 * features.channels, 1), Nonlinearity::silu);
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
