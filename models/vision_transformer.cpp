// Vision transformer, as torchvision/models/vision_transformer.py (Dosovitskiy et al. 2010.11929).
//
// Keys: "layers", "hidden", "heads", "ffn", "patch_size", "image_size" (224), "classes" (1000), "attention"
// (fused, unfused), "joined_projections" (true; false: queries, keys and values apart, and the names of Hugging Face's
// modeling_vit.py). Dropout is 0, as torchvision trains it.

#include <fmt/format.h>

#include <array>
#include <string>

#include "models/image_network.h"
#include "models/instance_keys.h"
#include "models/token_network.h"
#include "models/transformer_block.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

struct VisionStyle {
  BlockStyle block;
  std::string class_token;
  std::string patches;
  std::string positions;
  std::string blocks;  // block i is BLOCKSi
  std::string final_norm;
  std::string head;
};

BlockStyle joined_block() {
  return {.names = {.query_key_value = "self_attention.in_proj",
                    .projection = "self_attention.out_proj",
                    .up = "mlp.0",
                    .down = "mlp.3",
                    .norm_1 = "ln_1",
                    .norm_2 = "ln_2"},
          .has_dropout = false,
          .has_mask = false,
          .joined_separator = '_'};
}

BlockStyle apart_block() {
  return {.names = {.query = "attention.attention.query",
                    .key = "attention.attention.key",
                    .value = "attention.attention.value",
                    .projection = "attention.output.dense",
                    .up = "intermediate.dense",
                    .down = "output.dense",
                    .norm_1 = "layernorm_before",
                    .norm_2 = "layernorm_after"},
          .order = BlockOrder::norms_last,
          .has_dropout = false,
          .has_mask = false};
}

VisionStyle read_style(const JsonReader& json) {
  if (flag_or(json, "joined_projections", true))
    return {.block = joined_block(),
            .class_token = "class_token",
            .patches = "conv_proj",
            .positions = "encoder.pos_embedding",
            .blocks = "encoder.layers.encoder_layer_",
            .final_norm = "encoder.ln",
            .head = "heads.head"};
  return {.block = apart_block(),
          .class_token = "vit.embeddings.cls_token",
          .patches = "vit.embeddings.patch_embeddings.projection",
          .positions = "vit.embeddings.position_embeddings",
          .blocks = "vit.encoder.layer.",
          .final_norm = "vit.layernorm",
          .head = "classifier"};
}

TransformerSizes read_vision_sizes(const JsonReader& json) {
  TransformerSizes sizes{.layers = required_count(json, "layers", 1000),
                         .hidden = required_count(json, "hidden", 1 << 16),
                         .heads = required_count(json, "heads", 1 << 16),
                         .causal = false};
  sizes.kv_heads = sizes.heads;
  sizes.ffn = count_or(json, "ffn", 4 * sizes.hidden, 1 << 18);
  if (sizes.hidden % sizes.heads != 0)
    json.required("heads").problem("does not divide \"hidden\"");
  if (const auto attention = json.optional("attention")) {
    const std::array<std::string, 2> kinds = {"fused", "unfused"};
    sizes.fused_attention = attention->one_of(kinds) == "fused";
  }
  return sizes;
}

std::string block_name(const VisionStyle& style, std::int64_t index) {
  return fmt::format("{}{}", style.blocks, index);
}

void register_encoder(ModelBuilder& builder, const VisionStyle& style, const TransformerSizes& sizes,
                      std::int64_t tokens) {
  builder.add_parameter(style.positions, {1, tokens, sizes.hidden});
  for (std::int64_t index = 0; index < sizes.layers; ++index)
    register_block(builder, style.block, sizes, block_name(style, index));
  register_norm(builder, style.block, style.final_norm, sizes.hidden);
}

// Puts the class token before the patches and adds the positions.
Tokens write_embedding(ModelBuilder& builder, const VisionStyle& style, const FeatureMap& patches,
                       std::int64_t tokens) {
  const Tokens output = TokenNetwork(builder).tokens(tokens, patches.channels);
  const std::int64_t elements = output.activation.elements;
  const std::int64_t embedded = elements + patches.channels;
  builder.add_layer({.name = "encoder.embedding",
                     .parameters = {builder.parameter(style.positions), builder.parameter(style.class_token)},
                     .forward_elements = 4 * elements,
                     .backward_elements = elements,
                     .weight_elements = embedded,
                     .gradient_elements = embedded,
                     .forward_kernels = 2,
                     .backward_kernels = 2},
                    {patches.activation});
  return output;
}

Model build_vision_transformer(JsonReader& json, const ModelRequest&) {
  const TransformerSizes sizes = read_vision_sizes(json);
  const VisionStyle style = read_style(json);
  const ImageTask task = read_image_task(json, 32);
  const std::int64_t patch_size = required_count(json, "patch_size", 32);
  const std::int64_t patches_per_side = task.image_size / patch_size;
  const std::int64_t token_count = patches_per_side * patches_per_side + 1;

  ImageNetwork images;
  ModelBuilder& builder = images.builder();
  builder.add_parameter(style.class_token, {1, 1, sizes.hidden});
  const FeatureMap patches = images.convolution(style.patches, images.image(3, task.image_size),
                                                patch_convolution(sizes.hidden, patch_size));
  register_encoder(builder, style, sizes, token_count);
  register_linear(builder, style.block, style.head, sizes.hidden, task.classes);

  TokenNetwork network(builder);
  Tokens stream = write_embedding(builder, style, patches, token_count);
  for (std::int64_t index = 0; index < sizes.layers; ++index)
    stream = write_block(builder, style.block, sizes, block_name(style, index), stream);
  network.norm(style.final_norm, stream);
  const Tokens class_token = network.tokens(1, sizes.hidden);
  network.cross_entropy("loss", network.linear({.name = style.head, .outputs = task.classes}, class_token));
  Model model = images.finish();
  model.transformer = sizes;
  return model;
}

const Registration<ModelFamily> vision_transformer_registration{
    "vision_transformer",
    ModelFamily{.build = build_vision_transformer, .description = "ViT image classifiers"}};

}  // namespace

}  // namespace lockstep
