// MLP-Mixer, as timm/models/mlp_mixer.py (Tolstikhin et al. 2105.01601).
//
// Keys: "layers", "hidden", "token_ffn" (hidden / 2: width of what mixes patches), "ffn" (4 x hidden: of what mixes
// channels), "patch_size", "image_size" (224), "classes" (1000). Nothing is dropped, as timm builds it.
//
// Patches come out of a convolution, whose channels stand first in memory; a sum lies as its first term does, so the
// stream stays so and every norm copies it. What mixes patches reads a view turned about: its first product copies
// that and adds its bias in a kernel of its own (PyTorch 2, aten/src/ATen/native/LinearAlgebra.cpp: should_fold).

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "models/channels_last.h"
#include "models/image_network.h"
#include "models/instance_keys.h"
#include "models/token_network.h"
#include "models/transformer_block.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep::models::mlp_mixer {

namespace {

struct MixerSizes {
  std::int64_t layers = 12;
  std::int64_t hidden = 768;
  std::int64_t token_ffn = 384;
  std::int64_t ffn = 3072;
};

Tokens write_norm(ModelBuilder& builder, const std::string& name, const FeatureMap& input) {
  add_channels_last_copy(builder, name + ".copy", input, 1);
  return lockstep::write_norm(builder, name, tokens_of(input));
}

Tokens write_activation(ModelBuilder& builder, const std::string& name, const Tokens& input) {
  return TokenNetwork(builder).activation(name, input, TensorSplit::replicated);
}

// Channels by patches. Backward copies what it gives the norm, and before that the gradient of what comes out of the
// mixing, which is turned about as well.
Tokens write_turned(ModelBuilder& builder, const std::string& name, const Tokens& input) {
  const std::int64_t copied = 2 * input.activation.elements;
  const AutocastWork cast = builder.cast_of(input.activation);
  builder.add_layer({.name = name,
                     .forward_elements = copied,
                     .backward_elements = copied,
                     .pointwise_elements = input.activation.elements,
                     .is_view_forward = true,
                     .eager_backward_elements = copied,
                     .eager_backward_kernels = 1,
                     .autocast_forward = cast,
                     .autocast_backward = cast},
                    {input.activation});
  return TokenNetwork(builder).tokens(input.width, input.count);
}

Tokens write_bias(ModelBuilder& builder, const std::string& name, const Tokens& input) {
  const std::int64_t elements = input.activation.elements;
  builder.add_layer(
      {.name = name, .forward_elements = 2 * elements, .pointwise_elements = elements, .backward_kernels = 0},
      {input.activation});
  return TokenNetwork(builder).tokens(input.count, input.width);
}

Tokens mix_patches(ModelBuilder& builder, const std::string& name, const Tokens& input, std::int64_t width) {
  Tokens path = write_turned(builder, name + ".transpose", input);
  path = write_linear(builder, name + ".fc1", path, width);
  path = write_bias(builder, name + ".fc1.add_bias", path);
  path = write_activation(builder, name + ".act", path);
  path = write_linear(builder, name + ".fc2", path, input.count);
  return {.activation = path.activation, .count = input.count, .width = input.width};
}

Tokens mix_channels(ModelBuilder& builder, const std::string& name, const Tokens& input, std::int64_t width) {
  Tokens path = write_linear(builder, name + ".fc1", input, width);
  path = write_activation(builder, name + ".act", path);
  return write_linear(builder, name + ".fc2", path, input.width);
}

FeatureMap write_block(ImageNetwork& images, const std::string& name, const FeatureMap& input,
                       const MixerSizes& sizes) {
  ModelBuilder& builder = images.builder();
  const Extent extent = {input.height, input.width};
  builder.begin_block();
  Tokens path = write_norm(builder, name + ".norm1", input);
  path = mix_patches(builder, name + ".mlp_tokens", path, sizes.token_ffn);
  const FeatureMap mixed = images.add(name + ".add_1", map_of(path, extent), input);
  path = write_norm(builder, name + ".norm2", mixed);
  path = mix_channels(builder, name + ".mlp_channels", path, sizes.ffn);
  const FeatureMap output = images.add(name + ".add_2", map_of(path, extent), mixed);
  builder.end_block();
  return output;
}

MixerSizes read_sizes(const JsonReader& json) {
  MixerSizes sizes{.layers = required_count(json, "layers", 200),
                   .hidden = required_count(json, "hidden", 1 << 14)};
  sizes.token_ffn = count_or(json, "token_ffn", std::max<std::int64_t>(sizes.hidden / 2, 1), 1 << 16);
  sizes.ffn = count_or(json, "ffn", 4 * sizes.hidden, 1 << 16);
  return sizes;
}

Model build(JsonReader& json, const ModelRequest&) {
  const MixerSizes sizes = read_sizes(json);
  const std::int64_t patch_size = required_count(json, "patch_size", 32);
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork images;
  FeatureMap stream = images.convolution("stem.proj", images.image(3, task.image_size),
                                         patch_convolution(sizes.hidden, patch_size));
  const Extent extent = {stream.height, stream.width};
  for (std::int64_t index = 0; index < sizes.layers; ++index)
    stream = write_block(images, fmt::format("blocks.{}", index), stream, sizes);
  const Tokens normed = write_norm(images.builder(), "norm", stream);
  const FeatureMap pooled = images.global_average_pool("global_pool", map_of(normed, extent));
  images.cross_entropy("loss", images.linear("head", pooled, task.classes));
  return images.finish();
}

const Registration<ModelFamily> mlp_mixer_registration{
    "mlp_mixer", ModelFamily{.build = build, .description = "MLP-Mixer image classifiers"}};

}  // namespace

}  // namespace lockstep::models::mlp_mixer
