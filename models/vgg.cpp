// VGG, as torchvision/models/vgg.py.
//
// Keys: "depths" (convolutions per stage; a stage ends in a pool), "batch_norm" (false: whether one follows each
// convolution), "image_size" (224), "classes" (1000).

#include <fmt/format.h>

#include <algorithm>

#include "models/image_network.h"
#include "models/instance_keys.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

// The features are one torch.nn.Sequential: convolutions, activations and pools share its numbering.
struct FeatureStack {
  ImageNetwork& network;
  FeatureMap features;
  bool has_batch_norm = false;
  int position = 0;

  std::string next_name() { return fmt::format("features.{}", position++); }
};

void write_stage(FeatureStack& stack, std::int64_t depth, std::int64_t channels) {
  Convolution convolution = same_convolution(channels, 3);
  convolution.bias = true;
  stack.network.builder().begin_block();
  for (std::int64_t index = 0; index < depth; ++index) {
    stack.features = stack.network.convolution(stack.next_name(), stack.features, convolution);
    if (stack.has_batch_norm)
      stack.features = stack.network.batch_norm(stack.next_name(), stack.features);
    stack.features = stack.network.relu(stack.next_name(), stack.features);
  }
  stack.features = stack.network.max_pool(stack.next_name(), stack.features, {});
  stack.network.builder().end_block();
}

FeatureMap write_classifier_layer(ImageNetwork& network, int position, const FeatureMap& input) {
  const FeatureMap hidden = network.linear(fmt::format("classifier.{}", position), input, 4096);
  const FeatureMap active = network.relu(fmt::format("classifier.{}", position + 1), hidden);
  return network.dropout(fmt::format("classifier.{}", position + 2), active);
}

Model build_vgg(JsonReader& json, const ModelRequest&) {
  const std::vector<std::int64_t> depths = required_depths(json, 5, 16);
  const bool has_batch_norm = flag_or(json, "batch_norm", false);
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork network;
  FeatureStack stack{
      .network = network, .features = network.image(3, task.image_size), .has_batch_norm = has_batch_norm};
  std::int64_t channels = 64;
  for (const std::int64_t depth : depths) {
    write_stage(stack, depth, channels);
    channels = std::min<std::int64_t>(2 * channels, 512);
  }
  const FeatureMap pooled = network.adaptive_average_pool("avgpool", stack.features, 7);
  const FeatureMap hidden = write_classifier_layer(network, 3, write_classifier_layer(network, 0, pooled));
  network.cross_entropy("loss", network.linear("classifier.6", hidden, task.classes));
  return network.finish();
}

const Registration<ModelFamily> vgg_registration{
    "vgg", ModelFamily{.build = build_vgg, .description = "VGG image classifiers"}};

}  // namespace

}  // namespace lockstep
