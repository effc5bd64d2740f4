// MobileNetV3, as torchvision/models/mobilenetv3.py (Howard et al. 1905.02244, tables 1 and 2).
//
// Keys: "variant" (large, small), "width_percent" (100), "image_size" (224), "classes" (1000).

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "models/image_network.h"
#include "models/instance_keys.h"
#include "models/inverted_residual.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

struct SearchedBlock {
  std::int64_t kernel;
  std::int64_t expanded;
  std::int64_t channels;
  bool has_squeeze;
  Nonlinearity nonlinearity;
  std::int64_t stride;
};

struct SearchedNetwork {
  std::vector<SearchedBlock> blocks;
  std::int64_t hidden = 0;  // of the classifier
};

SearchedNetwork large_network() {
  constexpr Nonlinearity relu = Nonlinearity::relu;
  constexpr Nonlinearity hardswish = Nonlinearity::hardswish;
  return {.blocks = {{3, 16, 16, false, relu, 1},
                     {3, 64, 24, false, relu, 2},
                     {3, 72, 24, false, relu, 1},
                     {5, 72, 40, true, relu, 2},
                     {5, 120, 40, true, relu, 1},
                     {5, 120, 40, true, relu, 1},
                     {3, 240, 80, false, hardswish, 2},
                     {3, 200, 80, false, hardswish, 1},
                     {3, 184, 80, false, hardswish, 1},
                     {3, 184, 80, false, hardswish, 1},
                     {3, 480, 112, true, hardswish, 1},
                     {3, 672, 112, true, hardswish, 1},
                     {5, 672, 160, true, hardswish, 2},
                     {5, 960, 160, true, hardswish, 1},
                     {5, 960, 160, true, hardswish, 1}},
          .hidden = 1280};
}

SearchedNetwork small_network() {
  constexpr Nonlinearity relu = Nonlinearity::relu;
  constexpr Nonlinearity hardswish = Nonlinearity::hardswish;
  return {.blocks = {{3, 16, 16, true, relu, 2},
                     {3, 72, 24, false, relu, 2},
                     {3, 88, 24, false, relu, 1},
                     {5, 96, 40, true, hardswish, 2},
                     {5, 240, 40, true, hardswish, 1},
                     {5, 240, 40, true, hardswish, 1},
                     {5, 120, 48, true, hardswish, 1},
                     {5, 144, 48, true, hardswish, 1},
                     {5, 288, 96, true, hardswish, 2},
                     {5, 576, 96, true, hardswish, 1},
                     {5, 576, 96, true, hardswish, 1}},
          .hidden = 1024};
}

InvertedResidual scaled_block(const SearchedBlock& block, std::int64_t width_percent) {
  const std::int64_t expanded = scaled_channels(block.expanded, width_percent);
  const std::int64_t squeezed = block.has_squeeze ? scaled_channels(expanded / 4, 100) : 0;
  return {.expanded = expanded,
          .kernel = block.kernel,
          .stride = block.stride,
          .channels = scaled_channels(block.channels, width_percent),
          .nonlinearity = block.nonlinearity,
          .squeeze = {.channels = squeezed, .nonlinearity = Nonlinearity::relu, .is_hard = true}};
}

Model build_mobilenet_v3(JsonReader& json, const ModelRequest&) {
  const std::array<std::string, 2> variants = {"large", "small"};
  const SearchedNetwork searched =
      json.required("variant").one_of(variants) == "small" ? small_network() : large_network();
  const std::int64_t width_percent = count_or(json, "width_percent", 100, 400);
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork network;
  FeatureMap features = write_convolution_block(network, "features.0", network.image(3, task.image_size),
                                                same_convolution(scaled_channels(16, width_percent), 3, 2),
                                                Nonlinearity::hardswish);
  int position = 1;
  for (const SearchedBlock& block : searched.blocks)
    features = write_inverted_residual(network, fmt::format("features.{}", position++), features,
                                       scaled_block(block, width_percent));
  features = write_convolution_block(network, fmt::format("features.{}", position), features,
                                     same_convolution(6 * features.channels, 1), Nonlinearity::hardswish);
  FeatureMap hidden = network.global_average_pool("avgpool", features);
  hidden = network.linear("classifier.0", hidden, scaled_channels(searched.hidden, width_percent));
  hidden = network.dropout("classifier.2", network.hardswish("classifier.1", hidden));
  network.cross_entropy("loss", network.linear("classifier.3", hidden, task.classes));
  return network.finish();
}

const Registration<ModelFamily> mobilenet_v3_registration{
    "mobilenet_v3", ModelFamily{.build = build_mobilenet_v3, .description = "MobileNetV3 image classifiers"}};

}  // namespace

}  // namespace lockstep
