#include "sim/compute/waves.h"

#include <algorithm>
#include <array>

#include "sim/base/units.h"

namespace lockstep {
namespace {

// `batch` products, each of so many rows and columns, summed over `depth`.
struct Output {
  std::int64_t batch = 1, rows = 1, columns = 1, depth = 1;

  std::int64_t weight() const { return batch * rows * columns * depth; }
};

struct OutputTile {
  std::int64_t rows, columns;
  std::int64_t blocks_on_an_sm;
};

// The largest that libraries have, and halves of it (the largest first: of equals it reads least). An SM holds as
// many of the smaller ones as make up a middle one.
constexpr std::array<OutputTile, 4> output_tiles{{{256, 128, 1}, {128, 128, 1}, {128, 64, 2}, {64, 64, 4}}};
// Less is not worth a part of its own.
constexpr std::int64_t shortest_part = 256;

struct Waves {
  std::int64_t alone = 1;
  std::int64_t beside = 1;
};

std::int64_t blocks_of(const Output& output, const OutputTile& tile) {
  return output.batch * divided_up(output.rows, tile.rows) * divided_up(output.columns, tile.columns);
}

// Into how many parts the reduction is split so that the blocks fill a wave.
std::int64_t parts_of_depth(const Output& output, std::int64_t blocks, std::int64_t slots) {
  return std::clamp<std::int64_t>(slots / blocks, 1, std::max<std::int64_t>(output.depth / shortest_part, 1));
}

Waves waves_of_output(const Output& output, const HeldSms& sms) {
  Waves best;
  Unsigned128 least = 0;
  for (const OutputTile& tile : output_tiles) {
    const std::int64_t slots = sms.all * tile.blocks_on_an_sm;
    const std::int64_t parts = parts_of_depth(output, blocks_of(output, tile), slots);
    const std::int64_t blocks = blocks_of(output, tile) * parts;
    const std::int64_t alone = divided_up(blocks, slots);
    const std::int64_t of_a_wave = tile.rows * tile.columns * tile.blocks_on_an_sm;
    const Unsigned128 time = static_cast<Unsigned128>(alone) * static_cast<Unsigned128>(of_a_wave) *
                             static_cast<Unsigned128>(output.depth) / static_cast<Unsigned128>(parts);
    if (least != 0 && time >= least)
      continue;
    least = time;
    best = {alone, divided_up(blocks, (sms.all - sms.held) * tile.blocks_on_an_sm)};
  }
  return best;
}

Output output_of(const GemmShape& shape, KernelDirection direction) {
  if (direction == KernelDirection::by_data)
    return {.batch = shape.batch, .rows = shape.m, .columns = shape.k, .depth = shape.n};
  if (direction == KernelDirection::by_weights)
    return {.batch = shape.batch, .rows = shape.k, .columns = shape.n, .depth = shape.m};
  return {.batch = shape.batch, .rows = shape.m, .columns = shape.n, .depth = shape.k};
}

// As products of patches with filters.
Output output_of(const ConvolutionShape& shape, KernelDirection direction) {
  const std::int64_t patch = shape.in_channels / shape.groups * shape.filter_height * shape.filter_width;
  const GemmShape product{.batch = shape.groups,
                          .m = shape.batch * shape.out_height() * shape.out_width(),
                          .n = shape.out_channels / shape.groups,
                          .k = patch};
  if (direction != KernelDirection::by_data)
    return output_of(product, direction);
  return {.batch = shape.groups,
          .rows = shape.batch * shape.height * shape.width,
          .columns = shape.in_channels / shape.groups,
          .depth = std::max<std::int64_t>(
              product.m * product.n * patch /
                  (shape.batch * shape.height * shape.width * (shape.in_channels / shape.groups)),
              1)};
}

// A block takes 128 queries of a head, and no sum is split.
Output output_of(const AttentionShape& shape, KernelDirection) {
  return {.batch = shape.batch * shape.heads,
          .rows = shape.sequence,
          .columns = shape.query_width,
          .depth = shape.keys_of_query()};
}

class Mean {
 public:
  void add(const HeldSms& sms, const Kernel& kernel, KernelDirection direction) {
    const Output output =
        std::visit([&](const auto& shape) { return output_of(shape, direction); }, kernel.shape);
    const Waves waves = waves_of_output(output, sms);
    const auto weight = static_cast<Unsigned128>(output.weight());
    weights_ += weight;
    weighed_ += weight * static_cast<Unsigned128>(ratio_down(waves.beside, waves.alone).parts_per_million());
  }
  Ratio value() const {
    return weights_ == 0 ? Ratio::one()
                         : Ratio::parts_per_million(static_cast<std::int64_t>(weighed_ / weights_));
  }

 private:
  Unsigned128 weights_ = 0;
  Unsigned128 weighed_ = 0;
};

}  // namespace

Ratio waves_beside(const HeldSms& sms, std::span<const Kernel> products) {
  Mean mean;
  for (const Kernel& kernel : products) {
    const bool is_attention = std::holds_alternative<AttentionShape>(kernel.shape);
    if (kernel.direction != KernelDirection::backward || is_attention) {
      mean.add(sms, kernel, kernel.direction);
      continue;
    }
    mean.add(sms, kernel, KernelDirection::by_data);
    mean.add(sms, kernel, KernelDirection::by_weights);
  }
  return mean.value();
}

}  // namespace lockstep
