// RegNetX and RegNetY, as torchvision/models/regnet.py (Radosavovic et al. 2003.13678).
//
// Keys: "depths" and "widths" (of each stage, as the generator's w_0, w_a and w_m quantize them), "group_width" (of the
// 3x3 convolutions; a stage that is narrower has one group), "squeeze_percent" (of a block's input, what RegNetY
// squeezes to; left out: nothing squeezes), "image_size" (224), "classes" (1000).

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/image_network.h"
#include "models/instance_keys.h"
#include "models/inverted_residual.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep::models::regnet {

namespace {

constexpr std::int64_t stem_channels = 32;
constexpr std::int64_t widest = 1 << 14;

struct Block {
  std::int64_t channels = 0;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  std::int64_t squeezed = 0;  // channels; 0: no squeeze and excitation
};

FeatureMap write_path(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                      const Block& block) {
  Convolution grouped = same_convolution(block.channels, 3, block.stride);
  grouped.groups = block.groups;
  FeatureMap path = write_convolution_block(network, name + ".a", input, same_convolution(block.channels, 1),
                                            Nonlinearity::relu);
  path = write_convolution_block(network, name + ".b", path, grouped, Nonlinearity::relu);
  if (block.squeezed > 0)
    path = write_squeeze_excitation(network, name + ".se", path,
                                    {.channels = block.squeezed, .nonlinearity = Nonlinearity::relu});
  return write_convolution_block(network, name + ".c", path, same_convolution(block.channels, 1),
                                 Nonlinearity::none);
}

FeatureMap write_block(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                       const Block& block) {
  network.builder().begin_block();
  FeatureMap identity = input;
  if (block.stride != 1 || input.channels != block.channels)
    identity = write_convolution_block(network, name + ".proj", input,
                                       same_convolution(block.channels, 1, block.stride), Nonlinearity::none);
  const FeatureMap path = write_path(network, name + ".f", input, block);
  const FeatureMap output = network.relu(name + ".activation", network.add(name + ".add", identity, path));
  network.builder().end_block();
  return output;
}

// A stage that is narrower than a group is one.
std::int64_t groups_of(std::int64_t width, std::int64_t group_width) {
  return width / std::min(width, group_width);
}

std::int64_t read_group_width(const JsonReader& json, const std::vector<std::int64_t>& widths) {
  const JsonReader key = json.required("group_width");
  const std::int64_t group_width = count_of(key, widest);
  const auto divides = [&](std::int64_t width) { return width % std::min(width, group_width) == 0; };
  if (!std::ranges::all_of(widths, divides))
    key.problem("does not divide each of \"widths\"");
  return group_width;
}

std::int64_t squeezed_channels(std::int64_t channels, std::int64_t percent) {
  return percent == 0 ? 0 : std::max<std::int64_t>(1, (channels * percent + 50) / 100);
}

Model build(JsonReader& json, const ModelRequest&) {
  const std::vector<std::int64_t> depths = required_depths(json, 4, 200);
  const std::vector<std::int64_t> widths = required_widths(json, depths.size(), widest);
  const std::int64_t group_width = read_group_width(json, widths);
  const std::int64_t squeeze_percent = count_or(json, "squeeze_percent", 0, 100);
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork network;
  FeatureMap features = write_convolution_block(network, "stem", network.image(3, task.image_size),
                                                same_convolution(stem_channels, 3, 2), Nonlinearity::relu);
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    for (std::int64_t index = 0; index < depths[stage]; ++index) {
      features =
          write_block(network, fmt::format("trunk_output.block{0}.block{0}-{1}", stage + 1, index), features,
                      {.channels = widths[stage],
                       .stride = index == 0 ? 2 : 1,
                       .groups = groups_of(widths[stage], group_width),
                       .squeezed = squeezed_channels(features.channels, squeeze_percent)});
    }
  }
  const FeatureMap pooled = network.global_average_pool("avgpool", features);
  network.cross_entropy("loss", network.linear("fc", pooled, task.classes));
  return network.finish();
}

const Registration<ModelFamily> regnet_registration{
    "regnet", ModelFamily{.build = build, .description = "RegNetX and RegNetY image classifiers"}};

}  // namespace

}  // namespace lockstep::models::regnet
