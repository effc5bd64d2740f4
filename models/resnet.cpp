// ResNet (v1.5: the stride is in the 3x3) and ResNeXt, as torchvision/models/resnet.py.
//
// Keys: "block" (basic, bottleneck), "depths", "groups" (1), "width_per_group" (64), "image_size" (224),
// "classes" (1000).

#include <fmt/format.h>

#include <array>
#include <string>

#include "models/image_network.h"
#include "models/instance_keys.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

struct ResidualBlock {
  bool is_bottleneck = true;
  std::int64_t planes = 64;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  std::int64_t width_per_group = 64;

  std::int64_t outputs() const { return is_bottleneck ? 4 * planes : planes; }
};

FeatureMap write_basic_path(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                            const ResidualBlock& block) {
  const FeatureMap first = network.convolution_norm(name + ".conv1", name + ".bn1", input,
                                                    same_convolution(block.planes, 3, block.stride));
  return network.convolution_norm(name + ".conv2", name + ".bn2", network.relu(name + ".relu1", first),
                                  same_convolution(block.planes, 3));
}

FeatureMap write_bottleneck_path(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                                 const ResidualBlock& block) {
  const std::int64_t width = block.planes * block.width_per_group / 64 * block.groups;
  Convolution grouped = same_convolution(width, 3, block.stride);
  grouped.groups = block.groups;
  const FeatureMap reduced =
      network.convolution_norm(name + ".conv1", name + ".bn1", input, same_convolution(width, 1));
  const FeatureMap spatial = network.convolution_norm(name + ".conv2", name + ".bn2",
                                                      network.relu(name + ".relu1", reduced), grouped);
  return network.convolution_norm(name + ".conv3", name + ".bn3", network.relu(name + ".relu2", spatial),
                                  same_convolution(block.outputs(), 1));
}

FeatureMap write_block(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                       const ResidualBlock& block) {
  network.builder().begin_block();
  const FeatureMap path = block.is_bottleneck ? write_bottleneck_path(network, name, input, block)
                                              : write_basic_path(network, name, input, block);
  FeatureMap identity = input;
  if (block.stride != 1 || input.channels != block.outputs()) {
    identity = network.convolution_norm(name + ".downsample.0", name + ".downsample.1", input,
                                        same_convolution(block.outputs(), 1, block.stride));
  }
  const FeatureMap output = network.relu(name + ".relu", network.add(name + ".add", path, identity));
  network.builder().end_block();
  return output;
}

FeatureMap write_stem(ImageNetwork& network, const FeatureMap& image) {
  const FeatureMap stem = network.convolution_norm("conv1", "bn1", image, same_convolution(64, 7, 2));
  return network.max_pool("maxpool", network.relu("relu", stem), {.kernel = 3, .stride = 2, .padding = 1});
}

Model build_resnet(JsonReader& json, const ModelRequest&) {
  const std::array<std::string, 2> blocks = {"basic", "bottleneck"};
  ResidualBlock block{.is_bottleneck = json.required("block").one_of(blocks) == "bottleneck",
                      .groups = count_or(json, "groups", 1, 64),
                      .width_per_group = count_or(json, "width_per_group", 64, 256)};
  const std::vector<std::int64_t> depths = required_depths(json, 4, 200);
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork network;
  FeatureMap features = write_stem(network, network.image(3, task.image_size));
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    for (std::int64_t index = 0; index < depths[stage]; ++index) {
      block.stride = stage > 0 && index == 0 ? 2 : 1;
      features = write_block(network, fmt::format("layer{}.{}", stage + 1, index), features, block);
    }
    block.planes *= 2;
  }
  const FeatureMap pooled = network.global_average_pool("avgpool", features);
  network.cross_entropy("loss", network.linear("fc", pooled, task.classes));
  return network.finish();
}

const Registration<ModelFamily> resnet_registration{
    "resnet", ModelFamily{.build = build_resnet, .description = "ResNet and ResNeXt image classifiers"}};

}  // namespace

}  // namespace lockstep
