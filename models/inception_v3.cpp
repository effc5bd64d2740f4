// Inception v3, as torchvision/models/inception.py (Szegedy et al. 1512.00567).
//
// Keys: "auxiliary_classifier" (true: trained with, as torchvision does), "image_size" (299), "classes"
// (1000).

#include <fmt/format.h>

#include <initializer_list>
#include <string>

#include "models/image_network.h"
#include "models/inception_module.h"
#include "models/instance_keys.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

Convolution valid_convolution(std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
  return {.channels = channels, .kernel = {kernel, kernel}, .stride = stride};
}

Convolution row_convolution(std::int64_t channels, std::int64_t width) {
  return {.channels = channels, .kernel = {1, width}, .padding = {0, (width - 1) / 2}};
}

Convolution column_convolution(std::int64_t channels, std::int64_t height) {
  return {.channels = channels, .kernel = {height, 1}, .padding = {(height - 1) / 2, 0}};
}

constexpr Pooling halving{.kernel = 3, .stride = 2};

void add_average_pool_branch(InceptionModule& mixed, std::int64_t channels) {
  mixed.add_average_pool_branch("avg_pool", {.kernel = 3, .stride = 1, .padding = 1},
                                {{"branch_pool", same_convolution(channels, 1)}});
}

// Ends in a 1x3 and a 3x1 side by side.
void add_forked_branch(InceptionModule& mixed, std::initializer_list<NamedConvolution> chain,
                       const std::string& fork) {
  mixed.add_forked_branch(chain, fork,
                          {{fork + "a", row_convolution(384, 3)}, {fork + "b", column_convolution(384, 3)}});
}

FeatureMap write_a(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                   std::int64_t pool_channels) {
  InceptionModule mixed(network, name, input);
  mixed.add_branch({{"branch1x1", same_convolution(64, 1)}});
  mixed.add_branch({{"branch5x5_1", same_convolution(48, 1)}, {"branch5x5_2", same_convolution(64, 5)}});
  mixed.add_branch({{"branch3x3dbl_1", same_convolution(64, 1)},
                    {"branch3x3dbl_2", same_convolution(96, 3)},
                    {"branch3x3dbl_3", same_convolution(96, 3)}});
  add_average_pool_branch(mixed, pool_channels);
  return mixed.finish();
}

FeatureMap write_b(ImageNetwork& network, const std::string& name, const FeatureMap& input) {
  InceptionModule mixed(network, name, input);
  mixed.add_branch({{"branch3x3", valid_convolution(384, 3, 2)}});
  mixed.add_branch({{"branch3x3dbl_1", same_convolution(64, 1)},
                    {"branch3x3dbl_2", same_convolution(96, 3)},
                    {"branch3x3dbl_3", valid_convolution(96, 3, 2)}});
  mixed.add_max_pool_branch("max_pool", halving);
  return mixed.finish();
}

FeatureMap write_c(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                   std::int64_t narrow) {
  InceptionModule mixed(network, name, input);
  mixed.add_branch({{"branch1x1", same_convolution(192, 1)}});
  mixed.add_branch({{"branch7x7_1", same_convolution(narrow, 1)},
                    {"branch7x7_2", row_convolution(narrow, 7)},
                    {"branch7x7_3", column_convolution(192, 7)}});
  mixed.add_branch({{"branch7x7dbl_1", same_convolution(narrow, 1)},
                    {"branch7x7dbl_2", column_convolution(narrow, 7)},
                    {"branch7x7dbl_3", row_convolution(narrow, 7)},
                    {"branch7x7dbl_4", column_convolution(narrow, 7)},
                    {"branch7x7dbl_5", row_convolution(192, 7)}});
  add_average_pool_branch(mixed, 192);
  return mixed.finish();
}

FeatureMap write_d(ImageNetwork& network, const std::string& name, const FeatureMap& input) {
  InceptionModule mixed(network, name, input);
  mixed.add_branch(
      {{"branch3x3_1", same_convolution(192, 1)}, {"branch3x3_2", valid_convolution(320, 3, 2)}});
  mixed.add_branch({{"branch7x7x3_1", same_convolution(192, 1)},
                    {"branch7x7x3_2", row_convolution(192, 7)},
                    {"branch7x7x3_3", column_convolution(192, 7)},
                    {"branch7x7x3_4", valid_convolution(192, 3, 2)}});
  mixed.add_max_pool_branch("max_pool", halving);
  return mixed.finish();
}

FeatureMap write_e(ImageNetwork& network, const std::string& name, const FeatureMap& input) {
  InceptionModule mixed(network, name, input);
  mixed.add_branch({{"branch1x1", same_convolution(320, 1)}});
  add_forked_branch(mixed, {{"branch3x3_1", same_convolution(384, 1)}}, "branch3x3_2");
  add_forked_branch(
      mixed, {{"branch3x3dbl_1", same_convolution(448, 1)}, {"branch3x3dbl_2", same_convolution(384, 3)}},
      "branch3x3dbl_3");
  add_average_pool_branch(mixed, 192);
  return mixed.finish();
}

FeatureMap write_inception_stem(ImageNetwork& network, const FeatureMap& image) {
  FeatureMap features = write_unit(network, "Conv2d_1a_3x3", image, valid_convolution(32, 3, 2));
  features = write_unit(network, "Conv2d_2a_3x3", features, valid_convolution(32, 3, 1));
  features = write_unit(network, "Conv2d_2b_3x3", features, same_convolution(64, 3));
  features = network.max_pool("maxpool1", features, halving);
  features = write_unit(network, "Conv2d_3b_1x1", features, same_convolution(80, 1));
  features = write_unit(network, "Conv2d_4a_3x3", features, valid_convolution(192, 3, 1));
  return network.max_pool("maxpool2", features, halving);
}

void write_auxiliary_classifier(ImageNetwork& network, const FeatureMap& input, std::int64_t classes) {
  FeatureMap features = network.average_pool("AuxLogits.avg_pool", input, {.kernel = 5, .stride = 3});
  features = write_unit(network, "AuxLogits.conv0", features, same_convolution(128, 1));
  features = write_unit(network, "AuxLogits.conv1", features, valid_convolution(768, 5, 1));
  features = network.global_average_pool("AuxLogits.pool", features);
  network.cross_entropy("AuxLogits.loss", network.linear("AuxLogits.fc", features, classes));
}

Model build_inception_v3(JsonReader& json, const ModelRequest&) {
  const bool has_auxiliary_classifier = flag_or(json, "auxiliary_classifier", true);
  constexpr std::int64_t smallest = 299;  // the auxiliary classifier's 5x5 needs a 17x17 map
  const ImageTask task = read_image_task(json, smallest);

  ImageNetwork network;
  FeatureMap features = write_inception_stem(network, network.image(3, task.image_size));
  features = write_a(network, "Mixed_5b", features, 32);
  features = write_a(network, "Mixed_5c", features, 64);
  features = write_a(network, "Mixed_5d", features, 64);
  features = write_b(network, "Mixed_6a", features);
  features = write_c(network, "Mixed_6b", features, 128);
  features = write_c(network, "Mixed_6c", features, 160);
  features = write_c(network, "Mixed_6d", features, 160);
  features = write_c(network, "Mixed_6e", features, 192);
  if (has_auxiliary_classifier)
    write_auxiliary_classifier(network, features, task.classes);
  features = write_d(network, "Mixed_7a", features);
  features = write_e(network, "Mixed_7b", features);
  features = write_e(network, "Mixed_7c", features);
  const FeatureMap dropped = network.dropout("dropout", network.global_average_pool("avgpool", features));
  network.cross_entropy("loss", network.linear("fc", dropped, task.classes));
  return network.finish();
}

const Registration<ModelFamily> inception_v3_registration{
    "inception_v3", ModelFamily{.build = build_inception_v3, .description = "Inception v3 image classifier"}};

}  // namespace

}  // namespace lockstep
