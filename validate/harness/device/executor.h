#pragma once

// The two ways a small kernel works: on each element by itself, or on a row or column together.
//
// Problem:   a formula written once for the CPU and once for the GPU is wrong in one of them sooner or later.
// Idea:      kernels.h states formulas as functions of an index; an executor runs them. SerialExecutor is a
//            loop; the GPU's (cuda_executor.cuh) is a grid. Maps name their operands (operands.h), so that
//            an executor may move many elements at once; loops over rows and columns find theirs themselves.
//            Reductions name a monoid: a value for nothing and a way to combine two.
// Invariant: every index is visited once, in any order; `finish` is called once a row or column, after all of
//            its elements. Functions capture by value and touch device memory only; what one index writes no
//            other reads or writes, but through `add`.
// Cost:      SerialExecutor's loops are what a compiler turns into vectors, given leave to reorder sums.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "validate/harness/device/device_function.h"
#include "validate/harness/device/operands.h"

namespace lockstep::harness {

class SerialExecutor {
 public:
  // formula(a float& for each operand), element by element.
  template <class Formula, class... Operands>
  void map(std::int64_t count, Formula formula, Operands... operands) const {
    map_in_rows(1, count, Placeless<Formula>{formula}, operands...);
  }

  // formula(row, column, a float& for each operand).
  template <class Formula, class... Operands>
  void map_in_rows(std::int64_t rows, std::int64_t columns, Formula formula, Operands... operands) const {
    for (std::int64_t row = 0; row < rows; ++row) {
#pragma GCC ivdep
      for (std::int64_t column = 0; column < columns; ++column)
        map_one({row * columns + column, row, column}, formula, operands...);
    }
  }

  // function(row, column): spares functions the division of an index, and loops a division each turn.
  template <class Function>
  void for_each_in_rows(std::int64_t rows, std::int64_t columns, Function function) const {
    for (std::int64_t row = 0; row < rows; ++row) {
#pragma GCC ivdep
      for (std::int64_t column = 0; column < columns; ++column) function(row, column);
    }
  }

  // finish(row, value of map(row, 0) ... map(row, columns - 1) combined).
  template <class Monoid, class Map, class Finish>
  void reduce_rows(std::int64_t rows, std::int64_t columns, Monoid monoid, Map map, Finish finish) const {
    for (std::int64_t row = 0; row < rows; ++row) {
      auto value = monoid.nothing();
      for (std::int64_t column = 0; column < columns; ++column)
        value = monoid.combine(value, map(row, column));
      finish(row, value);
    }
  }

  // finish(column, value of map(0, column) ... map(rows - 1, column) combined). Walks along rows.
  template <class Monoid, class Map, class Finish>
  void reduce_columns(std::int64_t rows, std::int64_t columns, Monoid monoid, Map map, Finish finish) const {
    using Value = decltype(monoid.nothing());
    std::vector<Value> totals(static_cast<std::size_t>(columns), monoid.nothing());
    std::vector<Value> sums(totals);
    for (std::int64_t first = 0; first < rows; first += block) {
      std::fill(sums.begin(), sums.end(), monoid.nothing());
      for (std::int64_t row = first; row < std::min(rows, first + block); ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
          Value& value = sums[static_cast<std::size_t>(column)];
          value = monoid.combine(value, map(row, column));
        }
      }
      for (std::size_t column = 0; column < totals.size(); ++column)
        totals[column] = monoid.combine(totals[column], sums[column]);
    }
    for (std::int64_t column = 0; column < columns; ++column)
      finish(column, totals[static_cast<std::size_t>(column)]);
  }

  // to[0] += value where several indices may add to the same number (a GPU's is atomic).
  static void add(float* to, float value) {
    *to += value;
  }

 private:
  template <class Formula, class... Operands>
  static void map_one(const Place& place, const Formula& formula, const Operands&... operands) {
    const auto apply = [&](auto... values) {
      formula(place.row, place.column, values...);
      (store(operands, place, values), ...);
    };
    apply(loaded(operands, place)...);
  }

  static constexpr std::int64_t block = 512;  // rows that are summed before their sum is added
};

}  // namespace lockstep::harness
