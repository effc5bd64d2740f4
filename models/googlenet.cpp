// GoogLeNet with batch norm, as torchvision/models/googlenet.py (Szegedy et al. 1409.4842, table 1; its 5x5
// convolutions are 3x3 there).
//
// Keys: "auxiliary_classifier" (true: trained with both, as torchvision does), "image_size" (224), "classes" (1000).

#include <array>
#include <string>

#include "models/image_network.h"
#include "models/inception_module.h"
#include "models/instance_keys.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

struct InceptionWidths {
  const char* name;
  std::int64_t direct;
  std::array<std::int64_t, 2> second;  // reduced, then filtered
  std::array<std::int64_t, 2> third;
  std::int64_t pooled;
};

FeatureMap write_inception(ImageNetwork& network, const FeatureMap& input, const InceptionWidths& widths) {
  InceptionModule module(network, widths.name, input);
  module.add_branch({{"branch1", same_convolution(widths.direct, 1)}});
  module.add_branch({{"branch2.0", same_convolution(widths.second[0], 1)},
                     {"branch2.1", same_convolution(widths.second[1], 3)}});
  module.add_branch({{"branch3.0", same_convolution(widths.third[0], 1)},
                     {"branch3.1", same_convolution(widths.third[1], 3)}});
  module.add_max_pool_branch("branch4.0", {.kernel = 3, .stride = 1, .padding = 1, .ceil_mode = true},
                             {{"branch4.1", same_convolution(widths.pooled, 1)}});
  return module.finish();
}

FeatureMap write_halved(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                        std::int64_t kernel) {
  return network.max_pool(name, input, {.kernel = kernel, .stride = 2, .ceil_mode = true});
}

FeatureMap write_googlenet_stem(ImageNetwork& network, const FeatureMap& image) {
  FeatureMap features = write_unit(network, "conv1", image, same_convolution(64, 7, 2));
  features = write_halved(network, "maxpool1", features, 3);
  features = write_unit(network, "conv2", features, same_convolution(64, 1));
  features = write_unit(network, "conv3", features, same_convolution(192, 3));
  return write_halved(network, "maxpool2", features, 3);
}

void write_googlenet_auxiliary(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                               std::int64_t classes) {
  FeatureMap features = network.adaptive_average_pool(name + ".pool", input, 4);
  features = write_unit(network, name + ".conv", features, same_convolution(128, 1));
  features = network.relu(name + ".relu", network.linear(name + ".fc1", features, 1024));
  features = network.linear(name + ".fc2", network.dropout(name + ".dropout", features), classes);
  network.cross_entropy(name + ".loss", features);
}

// The auxiliary classifiers run where they branch off, and are registered behind all modules.
FeatureMap write_googlenet_modules(ImageNetwork& network, FeatureMap features, std::int64_t classes,
                                   bool has_auxiliary_classifiers) {
  features = write_inception(network, features, {"inception3a", 64, {96, 128}, {16, 32}, 32});
  features = write_inception(network, features, {"inception3b", 128, {128, 192}, {32, 96}, 64});
  features = write_halved(network, "maxpool3", features, 3);
  features = write_inception(network, features, {"inception4a", 192, {96, 208}, {16, 48}, 64});
  if (has_auxiliary_classifiers)
    write_googlenet_auxiliary(network, "aux1", features, classes);
  features = write_inception(network, features, {"inception4b", 160, {112, 224}, {24, 64}, 64});
  features = write_inception(network, features, {"inception4c", 128, {128, 256}, {24, 64}, 64});
  features = write_inception(network, features, {"inception4d", 112, {144, 288}, {32, 64}, 64});
  if (has_auxiliary_classifiers)
    write_googlenet_auxiliary(network, "aux2", features, classes);
  features = write_inception(network, features, {"inception4e", 256, {160, 320}, {32, 128}, 128});
  features = write_halved(network, "maxpool4", features, 2);
  features = write_inception(network, features, {"inception5a", 256, {160, 320}, {32, 128}, 128});
  features = write_inception(network, features, {"inception5b", 384, {192, 384}, {48, 128}, 128});
  network.builder().register_last("aux");
  return features;
}

Model build_googlenet(JsonReader& json, const ModelRequest&) {
  const bool has_auxiliary_classifiers = flag_or(json, "auxiliary_classifier", true);
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork network;
  const FeatureMap stem = write_googlenet_stem(network, network.image(3, task.image_size));
  const FeatureMap features = write_googlenet_modules(network, stem, task.classes, has_auxiliary_classifiers);
  const FeatureMap dropped = network.dropout("dropout", network.global_average_pool("avgpool", features));
  network.cross_entropy("loss", network.linear("fc", dropped, task.classes));
  return network.finish();
}

const Registration<ModelFamily> googlenet_registration{
    "googlenet", ModelFamily{.build = build_googlenet, .description = "GoogLeNet image classifier"}};

}  // namespace

}  // namespace lockstep
