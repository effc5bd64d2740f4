// Products in closed form, one constant at a time, on a unit of 128 SMs that multiply 10^12 FLOPs a second
// each.
//
// A step of one tile of 256 x 128 is 2 x 256 x 128 FLOPs: 65.536 ns.

#include "sim/compute/product_time.h"

#include <doctest/doctest.h>

namespace lockstep::product_time_test {

constexpr std::int64_t tera = 1'000'000'000'000;
constexpr Duration start = Duration::microseconds(2);

// Nothing but FLOPs: operands and memory cost nothing that shows, and a wave its part.
ProductConstants only_flops() {
  return {.efficiency = Ratio::one(),
          .operands = Bandwidth{1000 * tera},
          .operand_loss = Ratio{},
          .tile = Duration::zero(),
          .whole_waves = Ratio{},
          .memory_efficiency = Ratio::one(),
          .memory_of_sm = Bandwidth{1000 * tera},
          .overlap_loss = Ratio{},
          .split_traffic = Ratio{},
          .split = Duration::microseconds(1),
          .start = start,
          .draw = {}};
}

Duration time_of(const ProductConstants& constants, const GemmShape& shape) {
  return product_time({.peak = FlopRate{128 * tera},
                       .sms = 128,
                       .memory = Bandwidth{tera},
                       .element_bytes = 2,
                       .constants = constants},
                      shape);
}

// 2 x 4096^3 / 128 x 10^12 = 1073.741824 us; of half the efficiency twice that; of three products three
// times.
TEST_CASE("a product that fills the GPU takes its FLOPs over the achieved peak, after its start") {
  ProductConstants constants = only_flops();
  const GemmShape square{.m = 4096, .n = 4096, .k = 4096};
  const Duration whole = Duration::picoseconds(1'073'741'824);
  CHECK(time_of(constants, square) == start + whole);
  CHECK(time_of(constants, {.batch = 3, .m = 4096, .n = 4096, .k = 4096}) == start + whole * 3);
  constants.efficiency = Ratio::percent(50);
  CHECK(time_of(constants, square) == start + whole * 2);
}

// 2048 x 2048 is 128 tiles of 256 x 128, one an SM: 1024 steps, and the tile's own microsecond once.
TEST_CASE("a tile takes its steps through the depth and its own beginning and end") {
  ProductConstants constants = only_flops();
  constants.tile = Duration::microseconds(1);
  CHECK(time_of(constants, {.m = 2048, .n = 2048, .k = 1024}) ==
        start + Duration::picoseconds(1024 * 65'536) + Duration::microseconds(1));
}

// 2304 x 2048 is 144 tiles: a wave of 128 and an eighth of one, of which half of the rest is paid too:
// 1 + 1/8 + 7/16 = 25/16 waves of 1024 steps and 100 us. Tiles are dear, so that no smaller ones are taken.
TEST_CASE("a wave that is begun costs its part, and a share of what it lacks") {
  ProductConstants constants = only_flops();
  constants.tile = Duration::microseconds(100);
  constants.whole_waves = Ratio::percent(50);
  const Duration tile = Duration::picoseconds(1024 * 65'536) + Duration::microseconds(100);
  CHECK(time_of(constants, {.m = 2304, .n = 2048, .k = 1024}) == start + scaled(tile, 25, 16));
}

// (256 + 128) x 2 B at 7.68 GB/s are 100 ns a step, longer than its 65.536 ns, half of which is not hidden.
TEST_CASE("operands that arrive late hold a tile up") {
  ProductConstants constants = only_flops();
  constants.operands = Bandwidth{7'680'000'000};
  constants.operand_loss = Ratio::percent(50);
  CHECK(time_of(constants, {.m = 2048, .n = 2048, .k = 1000}) ==
        start + Duration::picoseconds(1000 * (100'000 + 65'536 / 2)));
}

// One row by 16384 x 16384: 2 x (16384 + 16384^2 + 16384) bytes at 0.8 x 10^12 a second are 671.170560 us.
// Its least tiles have 16 rows: 16384 / 128 of 16 x 128, one an SM, 16384 steps of 4.096 ns: 67.108864 us, a
// tenth of which is not hidden.
TEST_CASE("a thin product takes its operands' way from memory") {
  ProductConstants constants = only_flops();
  constants.memory_efficiency = Ratio::percent(80);
  const GemmShape thin{.m = 1, .n = 16384, .k = 16384};
  CHECK(time_of(constants, thin) == start + Duration::picoseconds(671'170'560));
  constants.overlap_loss = Ratio::percent(10);
  CHECK(time_of(constants, thin) == start + Duration::picoseconds(671'170'560 + 6'710'887));
}

// One tile of 32 x 16 or 16 x 32 at least, 65536 deep, whose SM draws 10 GB/s. In 96 cuts of 683 a strip is
// drawn in 6.6 us, in 128 of 512 in 4.9, less than the 5.4 that memory's 800 GB/s take for 2 x 16 x 65536 + 16 x
// 16 elements of 2 B and 128 partial sums of 16 x 16 x 4 B; and a microsecond to add them.
TEST_CASE("a small product that is deep is cut in depth, for the price of its partial sums") {
  ProductConstants constants = only_flops();
  constants.memory_efficiency = Ratio::percent(80);
  constants.memory_of_sm = Bandwidth{10'000'000'000};
  constants.split_traffic = Ratio::one();
  const GemmShape deep{.m = 16, .n = 16, .k = 65'536};
  const std::int64_t operands = (2 * 16 * 65'536 + 16 * 16) * 2;
  const std::int64_t sums = 128 * 16 * 16 * 4;
  CHECK(time_of(constants, deep) ==
        start + time_to_move(Bytes{operands + sums}, Bandwidth{800'000'000'000}) + constants.split);
  constants.split = Duration::seconds(1);
  const std::int64_t strips = (16 + 32) * 65'536 * 2;
  CHECK(time_of(constants, deep) == start + time_to_move(Bytes{strips}, constants.memory_of_sm));
}

// 16 and 17 rows: the further row of tiles draws the same columns.
TEST_CASE("a row of tiles more does not hurry what its columns draw") {
  ProductConstants constants = only_flops();
  constants.memory_of_sm = Bandwidth{10'000'000'000};
  constants.split = Duration::seconds(1);
  for (const std::int64_t rows : {8, 16, 32, 64, 128})
    CHECK(time_of(constants, {.m = rows + 1, .n = 256, .k = 4096}) >=
          time_of(constants, {.m = rows, .n = 256, .k = 4096}));
}

// The same product whose operands are a hundredth in memory: computing is what is left.
TEST_CASE("a product whose operands are said takes these from memory") {
  const ProductConstants constants = only_flops();
  const ProductUnit unit{.peak = FlopRate{128 * tera},
                         .sms = 128,
                         .memory = Bandwidth{1'000'000'000},
                         .element_bytes = 2,
                         .constants = constants};
  const GemmShape shape{.m = 2048, .n = 2048, .k = 1024};
  CHECK(product_time(unit, shape, 5'000'000) == start + Duration::milliseconds(10));
  CHECK(product_time(unit, shape, 0) == start + Duration::picoseconds(1024 * 65'536));
}

}  // namespace lockstep::product_time_test
