// MNASNet-B1, as torchvision/models/mnasnet.py (Tan et al. 1807.11626).
//
// Keys: "width_percent", "image_size" (224), "classes" (1000).

#include <fmt/format.h>

#include <array>
#include <string>

#include "models/image_network.h"
#include "models/instance_keys.h"
#include "models/inverted_residual.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

struct MnasnetStack {
  std::int64_t channels;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t expansion;
  std::int64_t depth;
};

constexpr std::array<MnasnetStack, 6> mnasnet_stacks = {{{24, 3, 2, 3, 3},
                                                         {40, 5, 2, 3, 3},
                                                         {80, 5, 2, 6, 3},
                                                         {96, 3, 1, 6, 2},
                                                         {192, 5, 2, 6, 4},
                                                         {320, 3, 1, 6, 1}}};

// One torch.nn.Sequential: convolutions, norms and activations share its numbering.
struct LayerSequence {
  ImageNetwork& network;
  std::string name;
  FeatureMap features;
  int position = 0;

  std::string next_name() { return fmt::format("{}.{}", name, position++); }
  void add_convolution_norm(const Convolution& convolution) {
    features = network.convolution(next_name(), features, convolution);
    features = network.batch_norm(next_name(), features);
  }
  void add_activated(const Convolution& convolution) {
    add_convolution_norm(convolution);
    features = network.relu(next_name(), features);
  }
};

FeatureMap write_mnasnet_block(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                               const MnasnetStack& stack) {
  const std::int64_t expanded = stack.expansion * input.channels;
  network.builder().begin_block();
  LayerSequence path{.network = network, .name = name + ".layers", .features = input};
  path.add_activated(same_convolution(expanded, 1));
  path.add_activated(depthwise_convolution(expanded, stack.kernel, stack.stride));
  path.add_convolution_norm(same_convolution(stack.channels, 1));
  if (stack.stride == 1 && input.channels == stack.channels)
    path.features = network.add(name + ".add", path.features, input);
  network.builder().end_block();
  return path.features;
}

void write_mnasnet_stack(LayerSequence& layers, MnasnetStack stack) {
  const std::string name = layers.next_name();
  for (std::int64_t index = 0; index < stack.depth; ++index) {
    layers.features =
        write_mnasnet_block(layers.network, fmt::format("{}.{}", name, index), layers.features, stack);
    stack.stride = 1;
  }
}

Model build_mnasnet(JsonReader& json, const ModelRequest&) {
  const std::int64_t width_percent = required_count(json, "width_percent", 400);
  const ImageTask task = read_image_task(json, 32);
  const std::int64_t stem = scaled_channels(32, width_percent);

  ImageNetwork network;
  LayerSequence layers{.network = network, .name = "layers", .features = network.image(3, task.image_size)};
  layers.add_activated(same_convolution(stem, 3, 2));
  layers.add_activated(depthwise_convolution(stem, 3));
  layers.add_convolution_norm(same_convolution(scaled_channels(16, width_percent), 1));
  for (MnasnetStack stack : mnasnet_stacks) {
    stack.channels = scaled_channels(stack.channels, width_percent);
    write_mnasnet_stack(layers, stack);
  }
  layers.add_activated(same_convolution(1280, 1));
  const FeatureMap pooled = network.global_average_pool("mean", layers.features);
  const FeatureMap dropped = network.dropout("classifier.0", pooled);
  network.cross_entropy("loss", network.linear("classifier.1", dropped, task.classes));
  return network.finish();
}

const Registration<ModelFamily> mnasnet_registration{
    "mnasnet", ModelFamily{.build = build_mnasnet, .description = "MNASNet image classifiers"}};

}  // namespace

}  // namespace lockstep
