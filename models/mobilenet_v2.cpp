// MobileNetV2, as torchvision/models/mobilenetv2.py (Sandler et al. 1801.04381, table 2).
//
// Keys: "width_percent" (100), "image_size" (224), "classes" (1000).

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

struct BottleneckStage {
  std::int64_t expansion;
  std::int64_t channels;
  std::int64_t depth;
  std::int64_t stride;
};

constexpr std::array<BottleneckStage, 7> bottleneck_stages = {{{1, 16, 1, 1},
                                                               {6, 24, 2, 2},
                                                               {6, 32, 3, 2},
                                                               {6, 64, 4, 2},
                                                               {6, 96, 3, 1},
                                                               {6, 160, 3, 2},
                                                               {6, 320, 1, 1}}};

FeatureMap write_linear_bottleneck(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                                   const BottleneckStage& stage) {
  const std::int64_t expanded = stage.expansion * input.channels;
  int part = 0;
  const auto next_part = [&] { return fmt::format("{}.conv.{}", name, part++); };

  network.builder().begin_block();
  FeatureMap path = input;
  if (stage.expansion != 1)
    path = write_convolution_block(network, next_part(), path, same_convolution(expanded, 1),
                                   Nonlinearity::relu6);
  path = write_convolution_block(network, next_part(), path, depthwise_convolution(expanded, 3, stage.stride),
                                 Nonlinearity::relu6);
  path = network.convolution(next_part(), path, same_convolution(stage.channels, 1));
  path = network.batch_norm(next_part(), path);
  if (stage.stride == 1 && input.channels == stage.channels)
    path = network.add(name + ".add", input, path);
  network.builder().end_block();
  return path;
}

Model build_mobilenet_v2(JsonReader& json, const ModelRequest&) {
  const std::int64_t width_percent = count_or(json, "width_percent", 100, 400);
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork network;
  FeatureMap features = write_convolution_block(network, "features.0", network.image(3, task.image_size),
                                                same_convolution(scaled_channels(32, width_percent), 3, 2),
                                                Nonlinearity::relu6);
  int position = 1;
  for (BottleneckStage stage : bottleneck_stages) {
    stage.channels = scaled_channels(stage.channels, width_percent);
    for (std::int64_t index = 0; index < stage.depth; ++index) {
      features = write_linear_bottleneck(network, fmt::format("features.{}", position++), features, stage);
      stage.stride = 1;
    }
  }
  const std::int64_t last = scaled_channels(1280, std::max<std::int64_t>(100, width_percent));
  features = write_convolution_block(network, fmt::format("features.{}", position), features,
                                     same_convolution(last, 1), Nonlinearity::relu6);
  const FeatureMap dropped =
      network.dropout("classifier.0", network.global_average_pool("avgpool", features));
  network.cross_entropy("loss", network.linear("classifier.1", dropped, task.classes));
  return network.finish();
}

const Registration<ModelFamily> mobilenet_v2_registration{
    "mobilenet_v2", ModelFamily{.build = build_mobilenet_v2, .description = "MobileNetV2 image classifiers"}};

}  // namespace

}  // namespace lockstep
