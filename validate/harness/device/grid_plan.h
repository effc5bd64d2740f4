#pragma once

// Which thread of a grid works on which index.
//
// Problem:   index arithmetic of GPU kernels goes wrong in corners (one column, a last slice that is short),
//            and a machine without a GPU cannot run the kernels to see it.
// Idea:      kernels only loop; where each block and thread begins, ends and steps is computed here, by plain
//            functions that the tests run on a CPU for every thread of a grid.
//            Rows:    a team of threads takes a row, a warp where rows are short, a block where they are
//                     long; where rows are too few to fill a GPU they are cut into slices.
//            Columns: 32 neighbours are a tile, so that a warp reads them together; the rows below a tile are
//                     cut into slices, because BatchNorm has 800,000 rows of 64 columns.
//            What slices leave is combined by a second launch, in the order of slices.
// Invariant: every index belongs to exactly one thread; no slice is empty; a grid's second dimension stays
//            below its limit of 65,535.

#include <algorithm>
#include <cstdint>

#include "validate/harness/device/device_function.h"

namespace lockstep::harness {

inline constexpr int threads_per_warp = 32;
inline constexpr int threads_per_block = 256;
// Blocks of 256 threads that keep a large GPU busy (132 multiprocessors of 8 blocks each); more only queue.
inline constexpr std::int64_t blocks_enough = 1056;

// Indices first, first + step, ... below end.
struct Share {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t step = 1;
};

constexpr std::int64_t divided_up(std::int64_t dividend, std::int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

// ---- each index by itself

// A thread takes chunks of neighbours, and this many of them in one turn.
inline constexpr std::int64_t chunks_at_once = 2;

constexpr std::int64_t blocks_for_map(std::int64_t count, std::int64_t numbers_per_chunk) {
  const std::int64_t chunks = divided_up(count, numbers_per_chunk);
  return std::min(divided_up(chunks, threads_per_block * chunks_at_once), blocks_enough * 8);
}

// ---- each element of each row: warps side by side on 32 columns, walking down the rows

inline constexpr int rows_at_once = 8;  // warps of a block

struct PlanePlan {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t tiles = 0;   // of 32 columns: the grid's first dimension
  std::int64_t layers = 0;  // of 8 rows at once: its second
};

constexpr PlanePlan plan_plane(std::int64_t rows, std::int64_t columns) {
  const std::int64_t tiles = divided_up(columns, threads_per_warp);
  const std::int64_t enough = divided_up(blocks_enough * 8, std::max<std::int64_t>(tiles, 1));
  return {rows, columns, tiles, std::min(divided_up(rows, rows_at_once), enough)};
}

LOCKSTEP_DEVICE_FUNCTION constexpr Share rows_of(const PlanePlan& plan, std::int64_t layer, int warp) {
  return {layer * rows_at_once + warp, plan.rows, plan.layers * rows_at_once};
}

// A thread is `lane` of its warp and `warp` of its block.
LOCKSTEP_DEVICE_FUNCTION constexpr std::int64_t column_of(std::int64_t tile, int lane) {
  return tile * threads_per_warp + lane;
}

// ---- rows

struct RowPlan {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  int threads_per_row = threads_per_warp;  // a warp or a whole block
  std::int64_t slices = 1;                 // of each row
  std::int64_t columns_per_slice = 0;
  std::int64_t blocks = 0;  // which walk over rows * slices pieces
};

constexpr RowPlan plan_rows(std::int64_t rows, std::int64_t columns) {
  RowPlan plan{.rows = rows, .columns = columns};
  plan.threads_per_row = columns <= 8 * threads_per_warp ? threads_per_warp : threads_per_block;
  // A slice is worth a launch more where every thread still has 16 elements of it.
  const std::int64_t least = 16 * threads_per_block;
  const std::int64_t wanted = std::min(blocks_enough / std::max<std::int64_t>(rows, 1), columns / least);
  plan.columns_per_slice = wanted > 1 ? divided_up(columns, wanted) : columns;
  plan.slices = plan.columns_per_slice > 0 ? divided_up(columns, plan.columns_per_slice) : 1;
  const std::int64_t teams_per_block = threads_per_block / plan.threads_per_row;
  plan.blocks = std::min(divided_up(rows * plan.slices, teams_per_block), blocks_enough * 4);
  return plan;
}

// The pieces (row * slices + slice) a thread's team takes.
LOCKSTEP_DEVICE_FUNCTION constexpr Share pieces_of(const RowPlan& plan, std::int64_t block, int thread) {
  const std::int64_t teams_per_block = threads_per_block / plan.threads_per_row;
  return {block * teams_per_block + thread / plan.threads_per_row, plan.rows * plan.slices,
          plan.blocks * teams_per_block};
}

LOCKSTEP_DEVICE_FUNCTION constexpr Share columns_of(const RowPlan& plan, std::int64_t piece, int thread) {
  const std::int64_t begin = piece % plan.slices * plan.columns_per_slice;
  const std::int64_t end = begin + plan.columns_per_slice;
  return {begin + thread % plan.threads_per_row, end < plan.columns ? end : plan.columns,
          plan.threads_per_row};
}

// ---- columns

struct ColumnPlan {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t tiles = 0;
  std::int64_t slices = 1;
  std::int64_t rows_per_slice = 0;
  int height = 8;  // warps of a block, each on a row of its own
};

inline constexpr int slices_at_once = 32;  // of the second launch: a block of 1024 threads

constexpr ColumnPlan plan_columns(std::int64_t rows, std::int64_t columns) {
  ColumnPlan plan{.rows = rows, .columns = columns};
  plan.height = rows_at_once;
  plan.tiles = divided_up(columns, threads_per_warp);
  // A slice is worth a launch more where every warp still has 8 rows of it.
  const std::int64_t wanted =
      std::min(divided_up(blocks_enough, std::max<std::int64_t>(plan.tiles, 1)), rows / (8 * rows_at_once));
  plan.rows_per_slice = wanted > 1 ? divided_up(rows, wanted) : rows;
  plan.slices = plan.rows_per_slice > 0 ? divided_up(rows, plan.rows_per_slice) : 1;
  return plan;
}

// Of the second launch, which combines what the slices of the first left: one slice, higher blocks.
constexpr ColumnPlan plan_slices(const ColumnPlan& first) {
  return {.rows = first.slices,
          .columns = first.columns,
          .tiles = first.tiles,
          .slices = 1,
          .rows_per_slice = first.slices,
          .height = slices_at_once};
}

LOCKSTEP_DEVICE_FUNCTION constexpr Share rows_of(const ColumnPlan& plan, std::int64_t slice, int warp) {
  const std::int64_t begin = slice * plan.rows_per_slice;
  const std::int64_t end = begin + plan.rows_per_slice;
  return {begin + warp, end < plan.rows ? end : plan.rows, plan.height};
}

}  // namespace lockstep::harness
