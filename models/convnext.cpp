// ConvNeXt, as torchvision/models/convnext.py (Liu et al. 2201.03545).
//
// Keys: "depths" and "widths" (of each stage), "image_size" (224), "classes" (1000).
//
// A block convolves each channel by itself (7x7), then norms and multiplies each pixel's channels: permutations are
// views (channels_last.h). Scaling by the layer's factors, dropping samples and adding is a kernel each.

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "models/channels_last.h"
#include "models/element_bytes.h"
#include "models/image_network.h"
#include "models/instance_keys.h"
#include "models/token_network.h"
#include "models/transformer_block.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep::models::convnext {

namespace {

constexpr std::int64_t expansion = 4;
constexpr std::int64_t widest = 1 << 14;

FeatureMap write_norm(ImageNetwork& network, const std::string& name, const FeatureMap& input) {
  return map_of(lockstep::write_norm(network.builder(), name, tokens_of(input)), {input.height, input.width});
}

FeatureMap write_pointwise(ImageNetwork& network, Layer layer, const std::vector<FeatureMap>& inputs) {
  const FeatureMap& shape = inputs.front();
  std::vector<Activation> read;
  for (const FeatureMap& input : inputs) read.push_back(input.activation);
  layer.pointwise_elements = shape.activation.elements;
  network.builder().add_layer(std::move(layer), read);
  FeatureMap output = shape;
  output.activation = network.builder().add_activation(shape.activation.elements);
  network.builder().mark_wide(output.activation);
  return output;
}

// One factor a channel, learned. Its gradient is a product as large as the map, and that summed. Under autocast the
// factors are in fp32, and so is what they multiply from here to the block's end.
FeatureMap write_layer_scale(ImageNetwork& network, const std::string& name, const FeatureMap& input) {
  ModelBuilder& builder = network.builder();
  const std::int64_t elements = input.activation.elements;
  return write_pointwise(
      network,
      {.name = name,
       .parameters = {builder.parameter(name)},
       .forward_elements = 2 * elements,
       .backward_elements = (2 + 1) * elements,
       .saved_elements = builder.keep(input.activation),
       .weight_elements = input.channels,
       .gradient_elements = input.channels,
       .eager_backward_elements = (1 + 2) * elements,
       .eager_backward_kernels = 2,
       .autocast_forward = {.bytes = element_bytes::wider * elements},
       .autocast_backward = {.bytes = ((2 + 2 + 1) * element_bytes::wider + element_bytes::cast) * elements,
                             .casts = 1}},
      {input});
}

FeatureMap write_stochastic_depth(ImageNetwork& network, const std::string& name, const FeatureMap& input) {
  const std::int64_t passed = 2 * input.activation.elements;
  const AutocastWork wide = {.bytes = element_bytes::wider * passed};
  return write_pointwise(network,
                         {.name = name,
                          .forward_elements = passed,
                          .backward_elements = passed,
                          .autocast_forward = wide,
                          .autocast_backward = wide},
                         {input});
}

FeatureMap write_sum(ImageNetwork& network, const std::string& name, const FeatureMap& path,
                     const FeatureMap& input) {
  const std::int64_t passed = 3 * input.activation.elements;
  return write_pointwise(network,
                         {.name = name,
                          .forward_elements = passed,
                          .autocast_forward = {.bytes = element_bytes::wider * passed},
                          .backward_kernels = 0},
                         {path, input});
}

FeatureMap write_feed_forward(ImageNetwork& network, const std::string& name, const FeatureMap& input) {
  ModelBuilder& builder = network.builder();
  Tokens stream = write_linear(builder, name + ".3", tokens_of(input), expansion * input.channels);
  stream = TokenNetwork(builder).activation(name + ".4", stream, TensorSplit::replicated);
  stream = write_linear(builder, name + ".5", stream, input.channels);
  return map_of(stream, {input.height, input.width});
}

FeatureMap write_block(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                       bool is_first) {
  Convolution depthwise = same_convolution(input.channels, 7);
  depthwise.groups = input.channels;
  depthwise.bias = true;
  network.builder().begin_block();
  network.builder().add_parameter(name + ".layer_scale", {input.channels, 1, 1});
  FeatureMap path = network.convolution(name + ".block.0", input, depthwise);
  path = write_norm(network, name + ".block.2", path);
  path = write_feed_forward(network, name + ".block", path);
  path = write_layer_scale(network, name + ".layer_scale", path);
  if (!is_first)
    path = write_stochastic_depth(network, name + ".stochastic_depth", path);
  const FeatureMap output = write_sum(network, name + ".add", path, input);
  network.builder().end_block();
  return output;
}

FeatureMap write_stem(ImageNetwork& network, const FeatureMap& image, std::int64_t channels) {
  const FeatureMap stem = network.convolution("features.0.0", image, patch_convolution(channels, 4));
  add_channels_last_copy(network.builder(), "features.0.permute", stem, 2);
  return write_norm(network, "features.0.1", stem);
}

FeatureMap write_downsampling(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                              std::int64_t channels) {
  return network.convolution(name + ".1", write_norm(network, name + ".0", input),
                             patch_convolution(channels, 2));
}

Model build(JsonReader& json, const ModelRequest&) {
  const std::vector<std::int64_t> depths = required_depths(json, 4, 200);
  const std::vector<std::int64_t> widths = required_widths(json, depths.size(), widest);
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork network;
  FeatureMap features =
      write_stem(network, network.image(3, task.image_size), widths.empty() ? 1 : widths.front());
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    if (stage > 0)
      features = write_downsampling(network, fmt::format("features.{}", 2 * stage), features, widths[stage]);
    for (std::int64_t index = 0; index < depths[stage]; ++index)
      features = write_block(network, fmt::format("features.{}.{}", 2 * stage + 1, index), features,
                             stage == 0 && index == 0);
  }
  const FeatureMap pooled = network.global_average_pool("avgpool", features);
  const FeatureMap normed = write_norm(network, "classifier.0", pooled);
  network.cross_entropy("loss", network.linear("classifier.2", normed, task.classes));
  return network.finish();
}

const Registration<ModelFamily> convnext_registration{
    "convnext", ModelFamily{.build = build, .description = "ConvNeXt image classifiers"}};

}  // namespace

}  // namespace lockstep::models::convnext
