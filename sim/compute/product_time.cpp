#include "sim/compute/product_time.h"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

struct Tile {
  std::int64_t rows;
  std::int64_t columns;
};

// What the libraries have kernels for, from the largest.
constexpr std::array tiles{Tile{256, 128}, Tile{128, 256}, Tile{128, 128}, Tile{128, 64},
                           Tile{64, 128},  Tile{64, 64},   Tile{64, 32},   Tile{32, 64},
                           Tile{32, 32},   Tile{128, 32},  Tile{32, 128},  Tile{16, 128},
                           Tile{16, 64},   Tile{64, 16},   Tile{16, 32},   Tile{32, 16}};

constexpr std::array<std::int64_t, 14> cuts_of_depth{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
constexpr std::int64_t least_depth = 64;  // of a cut
constexpr std::int64_t sum_bytes = 4;     // of a partial sum
constexpr std::int64_t fine = 1'000;      // femtoseconds in a picosecond
constexpr std::int64_t part_of_wave = 1'024;

Duration longer_and_part(Duration left, Duration right, Ratio part) {
  const auto [shorter, longer] = std::minmax(left, right);
  return longer + scaled(shorter, part);
}

// Of one product: what does not depend on the tile is worked out once.
class ProductTimer {
 public:
  ProductTimer(const ProductUnit& unit, const GemmShape& shape, std::int64_t elements)
      : unit_(unit),
        constants_(unit.constants),
        shape_(shape),
        bytes_(elements * unit.element_bytes),
        partial_sums_(shape.batch * shape.m * shape.n * sum_bytes),
        of_sm_(unit.of_sm(constants_.efficiency)),
        memory_(unit.memory_at(constants_.memory_efficiency)) {}

  Duration least() const {
    Duration best = Duration::picoseconds(INT64_MAX);
    for (const Tile& tile : tiles) {
      const std::int64_t blocks =
          shape_.batch * divided_up(shape_.m, tile.rows) * divided_up(shape_.n, tile.columns);
      const std::int64_t step = step_of(tile);
      if (spread_evenly(blocks, step) >= best)
        continue;  // no cut of it is quicker
      for (const std::int64_t cuts : cuts_of_depth) {
        if (cuts > 1 && blocks * (cuts / 2) >= 2 * unit_.sms)
          break;
        best = std::min(best, time(tile, blocks * cuts, step, cuts));
        if (shape_.k <= least_depth * cuts)
          break;  // a cut is no shorter: further ones only cost
      }
    }
    return best + constants_.start;
  }

 private:
  // One tile, one further in depth, in femtoseconds.
  std::int64_t step_of(const Tile& tile) const {
    const auto fine_time = [](std::int64_t amount, std::int64_t rate) {
      return arithmetic::time_at_rate(amount * fine, rate);
    };
    const Duration computing = fine_time(2 * tile.rows * tile.columns, of_sm_.count());
    const Duration loading =
        fine_time((tile.rows + tile.columns) * unit_.element_bytes, constants_.operands.count());
    return longer_and_part(computing, loading, constants_.operand_loss).picoseconds();
  }

  // What all SMs together take at least: the waves full, and nothing but the depth.
  Duration spread_evenly(std::int64_t blocks, std::int64_t step) const {
    return Duration::picoseconds(arithmetic::product_divided_up(blocks, shape_.k * step, unit_.sms * fine));
  }

  Duration time(const Tile& tile, std::int64_t blocks, std::int64_t step, std::int64_t cuts) const {
    const std::int64_t whole_depth = divided_up(shape_.k, cuts);
    const std::int64_t depth = cuts == 1 ? whole_depth : std::max(whole_depth, least_depth);
    const Duration tiled = in_waves(blocks, depth * step + constants_.tile.picoseconds() * fine);
    const Duration whole = longer_and_part(tiled, moving(tile, depth, cuts), constants_.overlap_loss);
    return cuts == 1 ? whole : whole + constants_.split;
  }

  // A wave that is begun costs its part of the tiles it has, or all of them.
  Duration in_waves(std::int64_t blocks, std::int64_t each) const {
    const std::int64_t begun = divided_up(blocks, unit_.sms) * part_of_wave;
    const std::int64_t spread =
        std::max(arithmetic::product_divided_up(blocks, part_of_wave, unit_.sms), part_of_wave);
    const std::int64_t waves = spread + scaled_up(begun - spread, constants_.whole_waves);
    return Duration::picoseconds(arithmetic::product_divided_up(waves, each, part_of_wave * fine));
  }

  // What all operands and partial sums take of memory, and no less than one SM takes to draw its own strips:
  // further SMs that draw the same do not hurry it.
  Duration moving(const Tile& tile, std::int64_t depth, std::int64_t cuts) const {
    const std::int64_t sums = cuts == 1 ? 0 : scaled_up(partial_sums_ * cuts, constants_.split_traffic);
    const Bytes strips{(tile.rows + tile.columns) * depth * unit_.element_bytes};
    return std::max(time_to_move(Bytes{bytes_ + sums}, memory_),
                    time_to_move(strips, constants_.memory_of_sm));
  }

  const ProductUnit& unit_;
  const ProductConstants& constants_;
  const GemmShape& shape_;
  std::int64_t bytes_;
  std::int64_t partial_sums_;
  FlopRate of_sm_;
  Bandwidth memory_;
};

}  // namespace

FlopRate ProductUnit::of_sm(Ratio efficiency) const {
  return std::max(scaled_in_millions(FlopRate{peak.count() / sms}, efficiency), FlopRate{1});
}

FlopRate ProductUnit::lanes_of_sm(Ratio efficiency) const {
  return std::max(scaled_in_millions(FlopRate{lanes.count() / sms}, efficiency), FlopRate{1});
}

Bandwidth ProductUnit::memory_at(Ratio efficiency) const {
  return std::max(scaled_in_millions(memory, efficiency), Bandwidth{1});
}

Duration product_time(const ProductUnit& unit, const GemmShape& shape) {
  const std::int64_t elements = shape.m * shape.k + shape.k * shape.n + shape.m * shape.n;
  return product_time(unit, shape, shape.batch * elements);
}

Duration product_time(const ProductUnit& unit, const GemmShape& shape, std::int64_t elements) {
  return ProductTimer(unit, shape, elements).least();
}

}  // namespace lockstep
