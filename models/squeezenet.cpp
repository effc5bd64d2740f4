// SqueezeNet, as torchvision/models/squeezenet.py (Iandola et al. 1602.07360): a convolution is its classifier.
//
// Keys: "version" (1_0, 1_1), "image_size" (224), "classes" (1000).

#include <fmt/format.h>

#include <array>
#include <string>

#include "models/image_network.h"
#include "models/instance_keys.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

struct SqueezenetVersion {
  std::int64_t stem_channels;
  std::int64_t stem_kernel;
  std::array<int, 2> fires_before_pools;
};

constexpr SqueezenetVersion version_1_0{96, 7, {3, 7}};
constexpr SqueezenetVersion version_1_1{64, 3, {2, 4}};

// Channels of each of a fire's two expansions; it squeezes to a quarter of that.
constexpr std::array<std::int64_t, 8> fire_channels = {64, 64, 128, 128, 192, 192, 256, 256};

FeatureMap write_activated_convolution(ImageNetwork& network, const std::string& name,
                                       const FeatureMap& input, Convolution convolution) {
  convolution.bias = true;
  return network.relu(name + "_activation", network.convolution(name, input, convolution));
}

FeatureMap write_fire(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                      std::int64_t channels) {
  network.builder().begin_block();
  const FeatureMap squeezed =
      write_activated_convolution(network, name + ".squeeze", input, same_convolution(channels / 4, 1));
  const FeatureMap narrow =
      write_activated_convolution(network, name + ".expand1x1", squeezed, same_convolution(channels, 1));
  const FeatureMap wide =
      write_activated_convolution(network, name + ".expand3x3", squeezed, same_convolution(channels, 3));
  const FeatureMap output = network.concatenate(name + ".cat", {narrow, wide});
  network.builder().end_block();
  return output;
}

FeatureMap write_squeezenet_features(ImageNetwork& network, const FeatureMap& image,
                                     const SqueezenetVersion& version) {
  constexpr Pooling pooling{.kernel = 3, .stride = 2, .ceil_mode = true};
  int position = 0;
  const auto next_name = [&] { return fmt::format("features.{}", position++); };
  FeatureMap features = network.convolution(next_name(), image,
                                            {.channels = version.stem_channels,
                                             .kernel = {version.stem_kernel, version.stem_kernel},
                                             .stride = 2,
                                             .bias = true});
  features = network.relu(next_name(), features);
  features = network.max_pool(next_name(), features, pooling);
  int fires = 0;
  for (const std::int64_t channels : fire_channels) {
    features = write_fire(network, next_name(), features, channels);
    ++fires;
    if (fires == version.fires_before_pools.front() || fires == version.fires_before_pools.back())
      features = network.max_pool(next_name(), features, pooling);
  }
  return features;
}

Model build_squeezenet(JsonReader& json, const ModelRequest&) {
  const std::array<std::string, 2> versions = {"1_0", "1_1"};
  const SqueezenetVersion& version =
      json.required("version").one_of(versions) == "1_1" ? version_1_1 : version_1_0;
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork network;
  FeatureMap features = write_squeezenet_features(network, network.image(3, task.image_size), version);
  Convolution classifier = same_convolution(task.classes, 1);
  classifier.bias = true;
  features = network.convolution("classifier.1", network.dropout("classifier.0", features), classifier);
  features = network.relu("classifier.2", features);
  network.cross_entropy("loss", network.global_average_pool("classifier.3", features));
  return network.finish();
}

const Registration<ModelFamily> squeezenet_registration{
    "squeezenet", ModelFamily{.build = build_squeezenet, .description = "SqueezeNet image classifiers"}};

}  // namespace

}  // namespace lockstep
