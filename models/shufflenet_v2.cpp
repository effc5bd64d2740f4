// ShuffleNetV2, as torchvision/models/shufflenetv2.py (Ma et al. 1807.11164, table 5).
//
// Keys: "stage_channels" (of the first stage, even; each next has twice as many), "last_channels" (1024),
// "image_size" (224), "classes" (1000).

#include <fmt/format.h>

#include <array>
#include <string>

#include "models/image_network.h"
#include "models/instance_keys.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

constexpr std::array<std::int64_t, 3> shuffle_depths = {4, 8, 4};

FeatureMap write_pointwise(ImageNetwork& network, const std::string& name, int position,
                           const FeatureMap& input, std::int64_t channels) {
  const auto part = [&](int offset) { return fmt::format("{}.{}", name, position + offset); };
  const FeatureMap normed = network.convolution_norm(part(0), part(1), input, same_convolution(channels, 1));
  return network.relu(part(2), normed);
}

FeatureMap write_depthwise(ImageNetwork& network, const std::string& name, int position,
                           const FeatureMap& input, std::int64_t stride) {
  return network.convolution_norm(fmt::format("{}.{}", name, position),
                                  fmt::format("{}.{}", name, position + 1), input,
                                  depthwise_convolution(input.channels, 3, stride));
}

FeatureMap write_second_branch(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                               std::int64_t channels, std::int64_t stride) {
  const FeatureMap reduced = write_pointwise(network, name, 0, input, channels);
  return write_pointwise(network, name, 5, write_depthwise(network, name, 3, reduced, stride), channels);
}

FeatureMap write_joined(ImageNetwork& network, const std::string& name, const FeatureMap& first,
                        const FeatureMap& second) {
  return network.channel_shuffle(name + ".channel_shuffle",
                                 network.concatenate(name + ".cat", {first, second}));
}

// Both branches read the whole input, and halve the image.
FeatureMap write_halving_unit(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                              std::int64_t channels) {
  const FeatureMap filtered = write_depthwise(network, name + ".branch1", 0, input, 2);
  const FeatureMap first = write_pointwise(network, name + ".branch1", 2, filtered, channels / 2);
  const FeatureMap second = write_second_branch(network, name + ".branch2", input, channels / 2, 2);
  return write_joined(network, name, first, second);
}

// Half of the channels stays as it is.
FeatureMap write_split_unit(ImageNetwork& network, const std::string& name, const FeatureMap& input) {
  const auto [first, second] = network.chunk(name + ".chunk", input);
  return write_joined(network, name, first,
                      write_second_branch(network, name + ".branch2", second, second.channels, 1));
}

FeatureMap write_shuffle_stage(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                               std::int64_t channels, std::int64_t depth) {
  FeatureMap features = input;
  for (std::int64_t index = 0; index < depth; ++index) {
    const std::string unit = fmt::format("{}.{}", name, index);
    network.builder().begin_block();
    features = index == 0 ? write_halving_unit(network, unit, features, channels)
                          : write_split_unit(network, unit, features);
    network.builder().end_block();
  }
  return features;
}

std::int64_t read_stage_channels(const JsonReader& json) {
  const JsonReader key = json.required("stage_channels");
  const std::int64_t channels = count_of(key, 1024);
  if (channels % 2 == 0)
    return channels;
  key.problem("does not halve");
  return channels + 1;
}

Model build_shufflenet_v2(JsonReader& json, const ModelRequest&) {
  std::int64_t channels = read_stage_channels(json);
  const std::int64_t last_channels = count_or(json, "last_channels", 1024, 8192);
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork network;
  FeatureMap features = network.convolution_norm("conv1.0", "conv1.1", network.image(3, task.image_size),
                                                 same_convolution(24, 3, 2));
  features = network.max_pool("maxpool", network.relu("conv1.2", features),
                              {.kernel = 3, .stride = 2, .padding = 1});
  int stage = 2;
  for (const std::int64_t depth : shuffle_depths) {
    features = write_shuffle_stage(network, fmt::format("stage{}", stage++), features, channels, depth);
    channels *= 2;
  }
  features = write_pointwise(network, "conv5", 0, features, last_channels);
  const FeatureMap pooled = network.global_average_pool("mean", features);
  network.cross_entropy("loss", network.linear("fc", pooled, task.classes));
  return network.finish();
}

const Registration<ModelFamily> shufflenet_v2_registration{
    "shufflenet_v2",
    ModelFamily{.build = build_shufflenet_v2, .description = "ShuffleNetV2 image classifiers"}};

}  // namespace

}  // namespace lockstep
