#pragma once

// The grid of cuda_executor.cuh on a CPU: the same plans, every block and thread in turn, values combined in
// the order in which lanes, warps and slices combine theirs.

#include <cstdint>
#include <vector>

#include "sim/base/check.h"
#include "validate/harness/device/grid_plan.h"

namespace lockstep::harness {

class EmulatedGrid {
 public:
  template <class Function>
  void for_each(std::int64_t count, Function function) const {
    const std::int64_t blocks = blocks_for_each(count);
    for (std::int64_t block = 0; block < blocks; ++block) {
      for (int thread = 0; thread < threads_per_block; ++thread)
        walk(share_of_each(count, blocks, block, thread), function);
    }
  }

  template <class Function>
  void for_each_in_rows(std::int64_t rows, std::int64_t columns, Function function) const {
    const PlanePlan plan = plan_plane(rows, columns);
    for (std::int64_t tile = 0; tile < plan.tiles; ++tile) {
      for (std::int64_t layer = 0; layer < plan.layers; ++layer) {
        for (int thread = 0; thread < threads_per_block; ++thread) {
          const std::int64_t column = column_of(tile, thread % threads_per_warp);
          if (column < columns)
            walk(rows_of(plan, layer, thread / threads_per_warp),
                 [&](std::int64_t row) { function(row, column); });
        }
      }
    }
  }

  template <class Monoid, class Map, class Finish>
  void reduce_rows(std::int64_t rows, std::int64_t columns, Monoid monoid, Map map, Finish finish) const {
    const RowPlan plan = plan_rows(rows, columns);
    if (plan.slices <= 1)
      return run_rows(plan, monoid, map, finish);
    std::vector<decltype(monoid.nothing())> partial(static_cast<std::size_t>(rows * plan.slices));
    run_rows(plan, monoid, map,
             [&](std::int64_t piece, auto value) { partial[static_cast<std::size_t>(piece)] = value; });
    const RowPlan second = plan_rows(rows, plan.slices);
    LOCKSTEP_CHECK(second.slices == 1, "slices are not cut a second time");
    run_rows(
        second, monoid,
        [&](std::int64_t row, std::int64_t slice) {
          return partial[static_cast<std::size_t>(row * plan.slices + slice)];
        },
        finish);
  }

  template <class Monoid, class Map, class Finish>
  void reduce_columns(std::int64_t rows, std::int64_t columns, Monoid monoid, Map map, Finish finish) const {
    const ColumnPlan plan = plan_columns(rows, columns);
    if (plan.slices <= 1)
      return run_columns(plan, monoid, map,
                         [&](std::int64_t, std::int64_t column, auto value) { finish(column, value); });
    std::vector<decltype(monoid.nothing())> partial(static_cast<std::size_t>(plan.slices * columns));
    run_columns(plan, monoid, map, [&](std::int64_t slice, std::int64_t column, auto value) {
      partial[static_cast<std::size_t>(slice * columns + column)] = value;
    });
    run_columns(
        plan_slices(plan), monoid,
        [&](std::int64_t slice, std::int64_t column) {
          return partial[static_cast<std::size_t>(slice * columns + column)];
        },
        [&](std::int64_t, std::int64_t column, auto value) { finish(column, value); });
  }

  static void add(float* to, float value) { *to += value; }

 private:
  template <class Function>
  static void walk(Share share, Function function) {
    for (std::int64_t i = share.first; i < share.end; i += share.step) function(i);
  }

  // What combine_warp leaves in lane 0 of the 32 from `lanes` on.
  template <class Monoid, class Value>
  static Value combined_warp(Monoid monoid, std::vector<Value>& values, std::size_t lanes) {
    for (std::size_t distance = threads_per_warp / 2; distance > 0; distance /= 2) {
      for (std::size_t lane = 0; lane < distance; ++lane)
        values[lanes + lane] = monoid.combine(values[lanes + lane], values[lanes + lane + distance]);
    }
    return values[lanes];
  }

  template <class Monoid, class Map, class Finish>
  static void run_rows(const RowPlan& plan, Monoid monoid, Map map, Finish finish) {
    for (std::int64_t block = 0; block < plan.blocks; ++block) {
      for (int team = 0; team < threads_per_block; team += plan.threads_per_row) {
        const Share pieces = pieces_of(plan, block, team);
        walk(pieces, [&](std::int64_t piece) {
          finish(piece, value_of_piece(plan, monoid, map, pieces, piece, block, team));
        });
      }
    }
  }

  template <class Monoid, class Map>
  static auto value_of_piece(const RowPlan& plan, Monoid monoid, Map map, const Share& pieces,
                             std::int64_t piece, std::int64_t block, int team) {
    std::vector<decltype(monoid.nothing())> values;
    for (int thread = team; thread < team + plan.threads_per_row; ++thread) {
      const Share same = pieces_of(plan, block, thread);
      LOCKSTEP_CHECK(same.first == pieces.first && same.step == pieces.step,
                     "a team is in the same piece together");
      values.push_back(monoid.nothing());
      walk(columns_of(plan, piece, thread), [&](std::int64_t column) {
        values.back() = monoid.combine(values.back(), map(piece / plan.slices, column));
      });
    }
    auto value = combined_warp(monoid, values, 0);
    for (std::size_t warp = threads_per_warp; warp < values.size(); warp += threads_per_warp)
      value = monoid.combine(value, combined_warp(monoid, values, warp));
    return value;
  }

  // finish(slice, column, value)
  template <class Monoid, class Map, class Finish>
  static void run_columns(const ColumnPlan& plan, Monoid monoid, Map map, Finish finish) {
    for (std::int64_t tile = 0; tile < plan.tiles; ++tile) {
      for (std::int64_t slice = 0; slice < plan.slices; ++slice) {
        for (int lane = 0; lane < threads_per_warp; ++lane) {
          const std::int64_t column = column_of(tile, lane);
          if (column >= plan.columns)
            continue;
          auto value = value_of_warp(plan, monoid, map, slice, 0, column);
          for (int warp = 1; warp < plan.height; ++warp)
            value = monoid.combine(value, value_of_warp(plan, monoid, map, slice, warp, column));
          finish(slice, column, value);
        }
      }
    }
  }

  template <class Monoid, class Map>
  static auto value_of_warp(const ColumnPlan& plan, Monoid monoid, Map map, std::int64_t slice, int warp,
                            std::int64_t column) {
    auto value = monoid.nothing();
    walk(rows_of(plan, slice, warp),
         [&](std::int64_t row) { value = monoid.combine(value, map(row, column)); });
    return value;
  }
};

}  // namespace lockstep::harness
