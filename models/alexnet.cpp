// AlexNet (the "one weird trick" version), as torchvision/models/alexnet.py.
//
// Keys: "image_size" (224), "classes" (1000).

#include <fmt/format.h>

#include "models/image_network.h"
#include "models/instance_keys.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

FeatureMap write_convolution(ImageNetwork& network, int position, const FeatureMap& input,
                             Convolution convolution) {
  convolution.bias = true;
  const FeatureMap output = network.convolution(fmt::format("features.{}", position), input, convolution);
  return network.relu(fmt::format("features.{}", position + 1), output);
}

FeatureMap write_features(ImageNetwork& network, const FeatureMap& image) {
  constexpr Pooling pooling{.kernel = 3, .stride = 2};
  FeatureMap features = write_convolution(
      network, 0, image, {.channels = 64, .kernel = {11, 11}, .stride = 4, .padding = {2, 2}});
  features = network.max_pool("features.2", features, pooling);
  features = write_convolution(network, 3, features, same_convolution(192, 5));
  features = network.max_pool("features.5", features, pooling);
  features = write_convolution(network, 6, features, same_convolution(384, 3));
  features = write_convolution(network, 8, features, same_convolution(256, 3));
  features = write_convolution(network, 10, features, same_convolution(256, 3));
  return network.max_pool("features.12", features, pooling);
}

FeatureMap write_hidden_layer(ImageNetwork& network, int position, const FeatureMap& input) {
  const FeatureMap dropped = network.dropout(fmt::format("classifier.{}", position), input);
  const FeatureMap hidden = network.linear(fmt::format("classifier.{}", position + 1), dropped, 4096);
  return network.relu(fmt::format("classifier.{}", position + 2), hidden);
}

Model build_alexnet(JsonReader& json, const ModelRequest&) {
  const ImageTask task = read_image_task(json, 63);
  ImageNetwork network;
  const FeatureMap features = write_features(network, network.image(3, task.image_size));
  const FeatureMap pooled = network.adaptive_average_pool("avgpool", features, 6);
  const FeatureMap hidden = write_hidden_layer(network, 3, write_hidden_layer(network, 0, pooled));
  network.cross_entropy("loss", network.linear("classifier.6", hidden, task.classes));
  return network.finish();
}

const Registration<ModelFamily> alexnet_registration{
    "alexnet", ModelFamily{.build = build_alexnet, .description = "AlexNet image classifier"}};

}  // namespace

}  // namespace lockstep
