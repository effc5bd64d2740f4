// DenseNet-BC, as torchvision/models/densenet.py without its memory-efficient option.
//
// Keys: "depths" (dense layers per block), "growth_rate", "stem_channels", "bottleneck" (4: the 1x1
// convolution makes this many times the growth rate), "image_size" (224), "classes" (1000).

#include <fmt/format.h>

#include <string>
#include <vector>

#include "models/image_network.h"
#include "models/instance_keys.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

struct DenseGrowth {
  std::int64_t rate = 32;
  std::int64_t bottleneck = 4;
};

FeatureMap write_norm_relu(ImageNetwork& network, const std::string& norm_name, const std::string& relu_name,
                           const FeatureMap& input) {
  return network.relu(relu_name, network.batch_norm(norm_name, input));
}

FeatureMap write_dense_layer(ImageNetwork& network, const std::string& name,
                             const std::vector<FeatureMap>& earlier, const DenseGrowth& growth) {
  network.builder().begin_block();
  const FeatureMap joined = network.concatenate(name + ".cat", earlier);
  const FeatureMap active = write_norm_relu(network, name + ".norm1", name + ".relu1", joined);
  const FeatureMap reduced =
      network.convolution(name + ".conv1", active, same_convolution(growth.bottleneck * growth.rate, 1));
  const FeatureMap narrow = write_norm_relu(network, name + ".norm2", name + ".relu2", reduced);
  const FeatureMap output = network.convolution(name + ".conv2", narrow, same_convolution(growth.rate, 3));
  network.builder().end_block();
  return output;
}

FeatureMap write_dense_block(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                             std::int64_t depth, const DenseGrowth& growth) {
  std::vector<FeatureMap> features = {input};
  for (std::int64_t index = 1; index <= depth; ++index) {
    const std::string layer = fmt::format("{}.denselayer{}", name, index);
    features.push_back(write_dense_layer(network, layer, features, growth));
  }
  return network.concatenate(name + ".cat", features);
}

FeatureMap write_transition(ImageNetwork& network, const std::string& name, const FeatureMap& input) {
  const FeatureMap active = write_norm_relu(network, name + ".norm", name + ".relu", input);
  const FeatureMap halved =
      network.convolution(name + ".conv", active, same_convolution(input.channels / 2, 1));
  return network.average_pool(name + ".pool", halved, {});
}

FeatureMap write_stem(ImageNetwork& network, const FeatureMap& image, std::int64_t channels) {
  const FeatureMap stem = network.convolution("features.conv0", image, same_convolution(channels, 7, 2));
  const FeatureMap active = write_norm_relu(network, "features.norm0", "features.relu0", stem);
  return network.max_pool("features.pool0", active, {.kernel = 3, .stride = 2, .padding = 1});
}

Model build_densenet(JsonReader& json, const ModelRequest&) {
  const std::vector<std::int64_t> depths = required_depths(json, 4, 100);
  const DenseGrowth growth{.rate = required_count(json, "growth_rate", 256),
                           .bottleneck = count_or(json, "bottleneck", 4, 16)};
  const std::int64_t stem_channels = required_count(json, "stem_channels", 1024);
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork network;
  FeatureMap features = write_stem(network, network.image(3, task.image_size), stem_channels);
  for (std::size_t stage = 1; stage <= depths.size(); ++stage) {
    const std::string block = fmt::format("features.denseblock{}", stage);
    features = write_dense_block(network, block, features, depths[stage - 1], growth);
    if (stage < depths.size())
      features = write_transition(network, fmt::format("features.transition{}", stage), features);
  }
  const FeatureMap active = write_norm_relu(network, "features.norm5", "relu", features);
  const FeatureMap pooled = network.global_average_pool("avgpool", active);
  network.cross_entropy("loss", network.linear("classifier", pooled, task.classes));
  return network.finish();
}

const Registration<ModelFamily> densenet_registration{
    "densenet", ModelFamily{.build = build_densenet, .description = "DenseNet image classifiers"}};

}  // namespace

}  // namespace lockstep
