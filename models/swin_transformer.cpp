// Swin transformer, as torchvision/models/swin_transformer.py (Liu et al. 2103.14030).
//
// Keys: "hidden" and "heads" (of the first stage; each stage after it has twice as many), "depths" (blocks of each
// stage), "window_size" (7), "patch_size" (4), "image_size" (224), "classes" (1000).
//
// Copies are counted as PyTorch makes them: padding copies where nothing is padded too, torch.roll copies once a
// dimension, a permutation that is reshaped is copied, and what takes a slice (":" as well) or one of three stacked
// tensors has a backward that clears a tensor as large as the whole and copies the part. Attention is not fused.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/channels_last.h"
#include "models/element_bytes.h"
#include "models/image_network.h"
#include "models/instance_keys.h"
#include "models/token_network.h"
#include "models/transformer_block.h"
#include "sim/base/registry.h"
#include "sim/base/units.h"
#include "sim/plan/model_family.h"

namespace lockstep::models::swin_transformer {

namespace {

constexpr std::int64_t expansion = 4;

struct SwinSizes {
  std::int64_t hidden = 96;  // of the first stage
  std::int64_t heads = 3;
  std::vector<std::int64_t> depths;
  std::int64_t window_size = 7;
  std::int64_t patch_size = 4;
};

// Kernels that only move elements.
struct Moves {
  std::int64_t elements = 0;  // read and written
  int kernels = 0;

  void clear(std::int64_t tensor) { add(tensor); }
  void copy(std::int64_t tensor) { add(2 * tensor); }
  void sum(std::int64_t tensor) { add(3 * tensor); }
  // Backward of a part of a whole.
  void put_back(std::int64_t part, std::int64_t whole) {
    clear(whole);
    copy(part);
  }

 private:
  void add(std::int64_t passed) {
    elements += passed;
    ++kernels;
  }
};

// There, and on the way back.
struct BothMoves {
  Moves forward;
  Moves backward;
  bool is_view_forward = false;  // a product reads what is moved where it lay
  bool is_view_backward = false;

  void copy(std::int64_t tensor) {
    forward.copy(tensor);
    backward.copy(tensor);
  }
};

// What stands in fp32 under autocast is moved so.
Tokens write_moves(ModelBuilder& builder, const std::string& name, const BothMoves& moves,
                   const Tokens& input, std::int64_t count, std::int64_t width) {
  const bool is_wide = builder.cast_of(input.activation).casts > 0;
  const std::int64_t wider = is_wide ? element_bytes::wider : 0;
  builder.add_layer({.name = name,
                     .forward_elements = moves.forward.elements,
                     .backward_elements = moves.backward.elements,
                     .pointwise_elements = count * width,
                     .is_view_forward = moves.is_view_forward,
                     .is_view_backward = moves.is_view_backward,
                     .autocast_forward = {.bytes = wider * moves.forward.elements},
                     .autocast_backward = {.bytes = wider * moves.backward.elements},
                     .forward_kernels = moves.forward.kernels,
                     .backward_kernels = moves.backward.kernels},
                    {input.activation});
  const Tokens output = TokenNetwork(builder).tokens(count, width);
  if (is_wide)
    builder.mark_wide(output.activation);
  return output;
}

// A square map, cut into square windows; sizes in pixels a side.
struct Windows {
  std::int64_t map = 0;
  std::int64_t window = 7;
  bool is_shifted = false;

  std::int64_t per_side() const { return divided_up(map, window); }
  std::int64_t padded() const { return per_side() * window; }
  bool is_padded() const { return padded() > map; }
  std::int64_t count() const { return per_side() * per_side(); }
  std::int64_t tokens() const { return padded() * padded(); }
};

void pad(BothMoves& moves, std::int64_t map, std::int64_t padded) {
  if (padded > map)
    moves.forward.clear(padded);
  moves.copy(map);
}

void roll(BothMoves& moves, std::int64_t tensor) {
  constexpr int dimensions = 2;
  for (int dimension = 0; dimension < dimensions; ++dimension) moves.copy(tensor);
}

// Backward of the slices that crop a padded map: samples, rows, columns and channels one after another.
void uncrop(Moves& backward, const Windows& windows, std::int64_t width) {
  const std::int64_t padded = windows.tokens() * width;
  const std::int64_t rows = windows.map * windows.padded() * width;
  const std::int64_t cropped = windows.map * windows.map * width;
  backward.put_back(cropped, cropped);
  if (windows.is_padded()) {
    backward.put_back(cropped, rows);
    backward.put_back(rows, padded);
  }
  backward.put_back(padded, padded);
}

// What cropping launches on the way back is counted here: on the way there it may launch nothing.
Tokens write_into_windows(ModelBuilder& builder, const std::string& name, const Tokens& input,
                          const Windows& windows) {
  const std::int64_t padded = windows.tokens() * input.width;
  BothMoves moves;
  pad(moves, input.activation.elements, padded);
  if (windows.is_shifted)
    roll(moves, padded);
  if (windows.per_side() > 1)
    moves.copy(padded);
  uncrop(moves.backward, windows, input.width);
  return write_moves(builder, name, moves, input, windows.tokens(), input.width);
}

Tokens write_out_of_windows(ModelBuilder& builder, const std::string& name, const Tokens& input,
                            const Windows& windows) {
  const std::int64_t padded = input.activation.elements;
  BothMoves moves;
  if (windows.per_side() > 1)
    moves.copy(padded);
  if (windows.is_shifted)
    roll(moves, padded);
  const std::int64_t pixels = windows.map * windows.map;
  if (windows.is_padded())
    moves.forward.copy(pixels * input.width);
  return moves.forward.kernels == 0 ? input : write_moves(builder, name, moves, input, pixels, input.width);
}

// Of one block.
struct Attention {
  std::string name;
  Windows windows;
  std::int64_t width = 0;
  std::int64_t heads = 1;

  // Rows of a window's scores.
  std::int64_t side() const { return windows.window * windows.window; }
  std::int64_t values() const { return windows.tokens() * width; }
  std::string table() const { return name + ".relative_position_bias_table"; }
};

void register_table(ModelBuilder& builder, const Attention& attention) {
  const std::int64_t offsets = 2 * attention.windows.window - 1;  // of two pixels of a window, along one side
  builder.add_parameter(attention.table(), {offsets * offsets, attention.heads});
  builder.add_buffer(attention.name + ".relative_position_index", attention.side() * attention.side(), 8);
}

// Queries are scaled, and each of the three is copied head by head.
Tokens write_heads(ModelBuilder& builder, const Attention& attention, const Tokens& query_key_value) {
  const std::int64_t part = attention.values();
  BothMoves moves;
  moves.is_view_forward = true;
  moves.is_view_backward = true;
  moves.copy(part);
  for (int copied = 0; copied < 3; ++copied) {
    moves.forward.copy(part);
    moves.backward.put_back(part, 3 * part);
  }
  moves.backward.sum(3 * part);
  moves.backward.sum(3 * part);
  moves.backward.copy(3 * part);
  return write_moves(builder, attention.name + ".heads", moves, query_key_value, query_key_value.count,
                     query_key_value.width);
}

// One product of each window and head. `kept` has its operands, but those that an earlier product keeps.
Activation write_product(ModelBuilder& builder, const std::string& name, const GemmShape& shape,
                         const Activation& kept) {
  const std::int64_t flops = 2 * shape.batch * shape.m * shape.n * shape.k;
  const std::int64_t outputs = shape.batch * shape.m * shape.n;
  const std::int64_t elements = shape.batch * (shape.m + shape.n) * shape.k + outputs;
  const std::int64_t kept_cast = builder.cast_again(kept);
  const AutocastWork cast = builder.cast_of(kept);
  builder.add_layer({.name = name,
                     .kind = LayerKind::attention,
                     .forward_flops = flops,
                     .backward_input_flops = 2 * flops,
                     .forward_elements = elements,
                     .backward_elements = 2 * elements,
                     .saved_elements = builder.keep(kept),
                     .autocast_bytes = kept_cast,
                     .product = shape,
                     .autocast_forward = cast,
                     .autocast_backward = cast,
                     .backward_kernels = 2},
                    {kept});
  return builder.add_product(outputs);
}

// Rows of the table, gathered and turned, are added to the scores; the table is in fp32, and so is what comes out.
// Backward: a sum over windows, turned; zeros; the index's remainder, stride, division, numbers and sort; rows added.
Activation write_position_bias(ModelBuilder& builder, const Attention& attention, const Activation& scores) {
  const std::int64_t elements = scores.elements;
  builder.add_layer(
      {.name = attention.name + ".relative_position_bias",
       .parameters = {builder.parameter(attention.table())},
       .forward_elements = 2 * elements,
       .backward_elements = elements,
       .weight_elements = attention.side() * attention.side() * attention.heads,
       .gradient_elements = builder.parameter_elements(attention.table()),
       .pointwise_elements = elements,
       .eager_forward_kernels = 2,
       .eager_backward_kernels = 1 + 5,
       .autocast_forward = {.bytes = element_bytes::wider * elements},
       .autocast_backward = {.bytes = (element_bytes::wider + element_bytes::cast) * elements, .casts = 1},
       .backward_kernels = 1 + 1 + 1},
      {scores});
  return builder.add_activation(elements);
}

// The mask is of one sample, made anew: zeros, nine regions, a permutation, differences; twice a comparison and a copy
// that is filled.
Activation write_mask(ModelBuilder& builder, const Attention& attention, const Activation& scores) {
  builder.add_layer({.name = attention.name + ".mask",
                     .forward_elements = 2 * scores.elements,
                     .pointwise_elements = scores.elements,
                     .autocast_forward = {.bytes = 2 * element_bytes::wider * scores.elements},
                     .forward_kernels = 1 + (1 + 9 + 1 + 1 + 2 * 3),
                     .backward_kernels = 0},
                    {scores});
  return builder.add_activation(scores.elements);
}

// Its backward multiplies gradient and weights in a kernel before (aten/src/ATen/native/cuda/SoftMax.cu).
Activation write_softmax(ModelBuilder& builder, const Attention& attention, const Activation& scores) {
  const std::int64_t elements = scores.elements;
  const Activation weights = builder.add_activation(elements);
  builder.mark_wide(weights);
  builder.add_layer({.name = attention.name + ".softmax",
                     .forward_elements = 2 * elements,
                     .backward_elements = 3 * elements,
                     .saved_elements = builder.keep(weights),
                     .autocast_bytes = element_bytes::half * elements,
                     .softmax_elements = elements,
                     .pointwise_elements = elements,
                     .eager_backward_elements = 3 * elements,
                     .eager_backward_kernels = 1,
                     .autocast_forward = {.bytes = 2 * element_bytes::wider * elements},
                     .autocast_backward = {.bytes = (3 + 3) * element_bytes::wider * elements}},
                    {scores});
  return weights;
}

Tokens write_attention(ModelBuilder& builder, const Attention& attention, const Tokens& query_key_value) {
  const std::int64_t side = attention.side();
  const std::int64_t head = std::max<std::int64_t>(attention.width / attention.heads, 1);
  const std::int64_t batch = attention.windows.count() * attention.heads;
  const Tokens heads = write_heads(builder, attention, query_key_value);
  const Activation scores =
      write_product(builder, attention.name + ".scores", {.batch = batch, .m = side, .n = side, .k = head},
                    heads.activation);
  Activation weights = write_position_bias(builder, attention, scores);
  if (attention.windows.is_shifted)
    weights = write_mask(builder, attention, weights);
  weights = write_softmax(builder, attention, weights);
  const Activation output = write_product(builder, attention.name + ".values",
                                          {.batch = batch, .m = side, .n = head, .k = side}, weights);
  BothMoves merge;
  merge.is_view_backward = true;
  merge.copy(output.elements);
  const Tokens merged{.activation = output, .count = heads.count, .width = attention.width};
  return write_moves(builder, attention.name + ".merged", merge, merged, merged.count, merged.width);
}

Tokens write_attention_part(ModelBuilder& builder, const std::string& name, const Tokens& input,
                            const Attention& attention) {
  const Tokens normed = write_norm(builder, name + ".norm1", input);
  register_table(builder, attention);
  Tokens path = write_into_windows(builder, attention.name + ".windows", normed, attention.windows);
  path = write_linear(builder, attention.name + ".qkv", path, 3 * attention.width);
  path = write_attention(builder, attention, path);
  path = write_linear(builder, attention.name + ".proj", path, attention.width);
  return write_out_of_windows(builder, attention.name + ".map", path, attention.windows);
}

Tokens write_feed_forward_part(ModelBuilder& builder, const std::string& name, const Tokens& input) {
  Tokens path = write_norm(builder, name + ".norm2", input);
  path = write_linear(builder, name + ".mlp.0", path, expansion * input.width);
  path = TokenNetwork(builder).activation(name + ".mlp.1", path, TensorSplit::replicated);
  return write_linear(builder, name + ".mlp.3", path, input.width);
}

// Under autocast the stream is in fp32 behind the first norm, and in half precision behind a merging's product.
Tokens write_sum(ImageNetwork& images, const std::string& name, const Tokens& path, const Tokens& stream) {
  ModelBuilder& builder = images.builder();
  if (builder.cast_of(stream.activation).casts > 0)
    return TokenNetwork(builder).residual(name, path, stream, false);
  const Extent row = {1, stream.count};
  return tokens_of(images.add(name, map_of(path, row), map_of(stream, row)));
}

Tokens write_dropped(ImageNetwork& images, const std::string& name, const Tokens& path) {
  return tokens_of(images.stochastic_depth(name, map_of(path, {1, path.count})));
}

Tokens write_block(ImageNetwork& images, const std::string& name, const Tokens& input,
                   const Attention& attention, bool is_first) {
  ModelBuilder& builder = images.builder();
  builder.begin_block();
  Tokens path = write_attention_part(builder, name, input, attention);
  if (!is_first)
    path = write_dropped(images, name + ".stochastic_depth_1", path);
  const Tokens attended = write_sum(images, name + ".add_1", path, input);
  path = write_feed_forward_part(builder, name, attended);
  if (!is_first)
    path = write_dropped(images, name + ".stochastic_depth_2", path);
  const Tokens output = write_sum(images, name + ".add_2", path, attended);
  builder.end_block();
  return output;
}

Tokens write_stem(ImageNetwork& images, const FeatureMap& image, std::int64_t width,
                  std::int64_t patch_size) {
  const FeatureMap patches = images.convolution("features.0.0", image, patch_convolution(width, patch_size));
  add_channels_last_copy(images.builder(), "features.0.1", patches, 2);
  return write_norm(images.builder(), "features.0.2", tokens_of(patches));
}

// Pixels of each square of four, one after another: every second row, every second column, all channels.
Tokens write_squares(ModelBuilder& builder, const std::string& name, const Tokens& input, std::int64_t map) {
  const std::int64_t squares = divided_up(map, 2) * divided_up(map, 2);
  const std::int64_t quarter = squares * input.width;
  BothMoves moves;
  pad(moves, input.activation.elements, 4 * quarter);
  moves.forward.copy(4 * quarter);
  for (int corner = 0; corner < 4; ++corner) {
    moves.backward.put_back(quarter, quarter);
    moves.backward.put_back(quarter, 2 * quarter);
    moves.backward.put_back(2 * quarter, 4 * quarter);
    if (corner > 0)
      moves.backward.sum(4 * quarter);
  }
  return write_moves(builder, name, moves, input, squares, 4 * input.width);
}

Tokens write_merging(ModelBuilder& builder, const std::string& name, const Tokens& input, std::int64_t map) {
  const std::int64_t outputs = 2 * input.width;
  builder.add_parameter(name + ".reduction.weight", {outputs, 4 * input.width});
  const Tokens squares = write_squares(builder, name + ".cat", input, map);
  const Tokens normed = write_norm(builder, name + ".norm", squares);
  return TokenNetwork(builder).linear({.name = name + ".reduction", .outputs = outputs}, normed);
}

SwinSizes read_sizes(const JsonReader& json) {
  const SwinSizes sizes{.hidden = required_count(json, "hidden", 1 << 12),
                        .heads = required_count(json, "heads", 1 << 12),
                        .depths = required_depths(json, 4, 100),
                        .window_size = count_or(json, "window_size", 7, 64),
                        .patch_size = count_or(json, "patch_size", 4, 32)};
  if (sizes.hidden % sizes.heads != 0)
    json.required("heads").problem("does not divide \"hidden\"");
  return sizes;
}

// Every second block of a stage moves its windows by half of one, if there is more than one.
Windows windows_of(const SwinSizes& sizes, std::int64_t map, std::int64_t block) {
  const bool can_shift = sizes.window_size > 1 && map > sizes.window_size;
  return {.map = map, .window = sizes.window_size, .is_shifted = can_shift && block % 2 == 1};
}

Model build(JsonReader& json, const ModelRequest&) {
  const SwinSizes sizes = read_sizes(json);
  const ImageTask task = read_image_task(json, 32);

  ImageNetwork images;
  ModelBuilder& builder = images.builder();
  std::int64_t map = task.image_size / sizes.patch_size;
  Tokens stream = write_stem(images, images.image(3, task.image_size), sizes.hidden, sizes.patch_size);
  for (std::size_t stage = 0; stage < sizes.depths.size(); ++stage) {
    if (stage > 0) {
      stream = write_merging(builder, fmt::format("features.{}", 2 * stage), stream, map);
      map = divided_up(map, 2);
    }
    for (std::int64_t index = 0; index < sizes.depths[stage]; ++index) {
      const std::string name = fmt::format("features.{}.{}", 2 * stage + 1, index);
      const Attention attention{.name = name + ".attn",
                                .windows = windows_of(sizes, map, index),
                                .width = stream.width,
                                .heads = sizes.heads << stage};
      stream = write_block(images, name, stream, attention, stage == 0 && index == 0);
    }
  }
  const Tokens normed = write_norm(builder, "norm", stream);
  const FeatureMap pooled = images.global_average_pool("avgpool", map_of(normed, {map, map}));
  images.cross_entropy("loss", images.linear("head", pooled, task.classes));
  return images.finish();
}

const Registration<ModelFamily> swin_transformer_registration{
    "swin_transformer", ModelFamily{.build = build, .description = "Swin transformer image classifiers"}};

}  // namespace

}  // namespace lockstep::models::swin_transformer
