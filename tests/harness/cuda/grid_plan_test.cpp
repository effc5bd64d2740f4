#include "validate/harness/device/grid_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>

namespace lockstep::harness::grid_plan_test {

TEST_CASE("no slice is empty, and grids stay within what a GPU launches") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    // Any number of bits is as likely as any other: small and huge shapes alike.
    const std::int64_t rows = 1 + static_cast<std::int64_t>(random() >> (24 + random() % 40));
    const std::int64_t columns = 1 + static_cast<std::int64_t>(random() >> (24 + random() % 40));
    const RowPlan row_plan = plan_rows(rows, columns);
    const ColumnPlan column_plan = plan_columns(rows, columns);
    const PlanePlan plane = plan_plane(rows, columns);
    CAPTURE(rows);
    CAPTURE(columns);
    REQUIRE((row_plan.slices - 1) * row_plan.columns_per_slice < columns);
    REQUIRE(row_plan.slices * row_plan.columns_per_slice >= columns);
    REQUIRE((column_plan.slices - 1) * column_plan.rows_per_slice < rows);
    REQUIRE(column_plan.slices * column_plan.rows_per_slice >= rows);
    constexpr std::int64_t most_blocks = 65'535;  // in a grid's second dimension; the first takes 2^31 - 1
    REQUIRE(plan_rows(rows, row_plan.slices).slices == 1);  // never cut a second time
    REQUIRE(column_plan.slices <= most_blocks);
    REQUIRE(plane.layers <= most_blocks);
    REQUIRE(plane.layers >= 1);
    REQUIRE(row_plan.blocks >= 1);
    REQUIRE(row_plan.blocks < std::int64_t{1} << 31U);
  }
}

// A block takes 256 threads times two chunks.
TEST_CASE("a map has a block for what it has chunks for, and never more than keep a GPU busy") {
  CHECK(blocks_for_map(1, 8) == 1);
  CHECK(blocks_for_map(512 * 8, 8) == 1);
  CHECK(blocks_for_map(512 * 8 + 1, 8) == 2);
  CHECK(blocks_for_map(512 * 4 * 100, 4) == 100);
  CHECK(blocks_for_map(std::int64_t{1} << 40, 8) == 8 * blocks_enough);
}

TEST_CASE("many rows of few columns, and one long row, are spread over as many blocks as a large GPU holds") {
  // ResNet-50's first BatchNorm, 64 images of 112 x 112 and 64 channels: two tiles of 32.
  const ColumnPlan norm = plan_columns(64 * 112 * 112, 64);
  CHECK(norm.tiles * norm.slices >= blocks_enough * 9 / 10);
  // The search for infinities in 100 million gradients.
  const RowPlan search = plan_rows(1, 100'000'000);
  CHECK(search.blocks >= blocks_enough * 9 / 10);
  // A softmax of many rows needs no second launch.
  CHECK(plan_rows(12 * 8 * 1024, 1024).slices == 1);
}

}  // namespace lockstep::harness::grid_plan_test
