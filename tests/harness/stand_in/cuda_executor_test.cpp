// The GPU's executor itself, run by threads that take turns.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "tests/harness/stand_in/host_grid.h"
#include "validate/harness/device/kernels.h"
#include "validate/harness/device/normalisation_kernels.h"

namespace lockstep::harness::cuda_executor_test {

// Corners of warps (32), blocks (256), of when rows or columns are cut into slices, and shapes of real
// layers.
const std::vector<std::pair<std::int64_t, std::int64_t>> shapes = {
    {0, 5},    {5, 0},    {1, 1},      {1, 31},      {1, 32},     {1, 33},    {1, 255},   {1, 256},
    {1, 257},  {3, 1},    {31, 2},     {33, 255},    {64, 1000},  {65, 31},   {128, 63},  {513, 1},
    {1, 8191}, {1, 8192}, {2, 70'001}, {1, 100'000}, {3, 50'257}, {1057, 40}, {5001, 33}, {300, 768}};

struct Count {
  std::int64_t nothing() const { return 0; }
  std::int64_t combine(std::int64_t a, std::int64_t b) const { return a + b; }
};

bool all_are(const std::vector<std::int64_t>& values, std::int64_t expected) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == expected; });
}

std::vector<std::int64_t> zeros(std::int64_t count) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(count));
}

TEST_CASE("a grid over rows and columns visits each element exactly once") {
  const HostGrid grid;
  for (const auto& [rows, columns] : shapes) {
    std::vector<std::int64_t> visits = zeros(rows * columns);
    grid.executor.for_each_in_rows(
        rows, columns, [at = visits.data(), width = columns](std::int64_t row, std::int64_t column) {
          ++at[row * width + column];
        });
    CHECK_MESSAGE(all_are(visits, 1), rows, " x ", columns);
  }
}

TEST_CASE("reducing rows reads each element once, finishes each row once and leaves nothing out") {
  const HostGrid grid(1);
  for (const auto& [rows, columns] : shapes) {
    std::vector<std::int64_t> visits = zeros(rows * columns);
    std::vector<std::int64_t> finished = zeros(rows);
    std::vector<std::int64_t> sums = zeros(rows);
    grid.executor.reduce_rows(
        rows, columns, Count{},
        [&, width = columns](std::int64_t row, std::int64_t column) {
          return ++visits[static_cast<std::size_t>(row * width + column)];
        },
        [&](std::int64_t row, std::int64_t sum) {
          ++finished[static_cast<std::size_t>(row)];
          sums[static_cast<std::size_t>(row)] = sum;
        });
    CHECK_MESSAGE(all_are(visits, 1), rows, " x ", columns);
    CHECK_MESSAGE(all_are(finished, 1), rows, " x ", columns);
    CHECK_MESSAGE(all_are(sums, columns), rows, " x ", columns);
  }
}

TEST_CASE("reducing columns reads each element once, finishes each column once and leaves nothing out") {
  const HostGrid grid(2);
  for (const auto& [rows, columns] : shapes) {
    std::vector<std::int64_t> visits = zeros(rows * columns);
    std::vector<std::int64_t> finished = zeros(columns);
    std::vector<std::int64_t> sums = zeros(columns);
    grid.executor.reduce_columns(
        rows, columns, Count{},
        [&, width = columns](std::int64_t row, std::int64_t column) {
          return ++visits[static_cast<std::size_t>(row * width + column)];
        },
        [&](std::int64_t column, std::int64_t sum) {
          ++finished[static_cast<std::size_t>(column)];
          sums[static_cast<std::size_t>(column)] = sum;
        });
    CHECK_MESSAGE(all_are(visits, 1), rows, " x ", columns);
    CHECK_MESSAGE(all_are(finished, 1), rows, " x ", columns);
    CHECK_MESSAGE(all_are(sums, rows), rows, " x ", columns);
  }
}

// Sums of whole numbers below 2^24 are exact in any order.
TEST_CASE("what many threads add to one number is all in it") {
  const HostGrid grid;
  for (const std::int64_t count : {1, 255, 257, 10'000}) {
    float sum = 0;
    grid.executor.for_each_in_rows(count, 1, [to = &sum](std::int64_t row, std::int64_t) {
      GridExecutor::add(to, static_cast<float>(row % 100));
    });
    float expected = 0;
    for (std::int64_t i = 0; i < count; ++i) expected += static_cast<float>(i % 100);
    CHECK(sum == expected);
  }
}

std::vector<float> draws(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
  return values;
}

// Sums of rows, then of columns.
template <class Executor>
std::vector<float> sums_by(const Executor& executor, std::int64_t rows, std::int64_t columns) {
  const std::vector<float> values = draws(static_cast<std::size_t>(rows * columns), 3);
  std::vector<float> sums(static_cast<std::size_t>(rows + columns));
  const auto value_at = [from = values.data(), columns](std::int64_t row, std::int64_t column) {
    return from[row * columns + column];
  };
  float* const to = sums.data();
  executor.reduce_rows(rows, columns, kernels::Sum{}, value_at,
                       [=](std::int64_t row, float sum) { to[row] = sum; });
  executor.reduce_columns(rows, columns, kernels::Sum{}, value_at,
                          [=](std::int64_t column, float sum) { to[rows + column] = sum; });
  return sums;
}

Tensor view_of(std::vector<float>& values) {
  return {values.data(), static_cast<std::int64_t>(values.size()), Type::fp32};
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST_CASE("equal inputs give equal bits, in whatever order threads run") {
  for (const auto& [rows, columns] : shapes) {
    const std::vector<float> first = sums_by(HostGrid(1).executor, rows, columns);
    const std::vector<float> second = sums_by(HostGrid(2).executor, rows, columns);
    CHECK_MESSAGE(std::memcmp(first.data(), second.data(), first.size() * sizeof(float)) == 0, rows, " x ",
                  columns);
  }
}

// n numbers of [-1, 1] in two orders: each rounds at most n sums below n.
TEST_CASE("sums by a grid are sums by a loop but for their order") {
  for (const auto& [rows, columns] : shapes) {
    const auto most = static_cast<float>(std::max(rows, columns));
    CHECK(largest_difference(sums_by(HostGrid().executor, rows, columns),
                             sums_by(SerialExecutor(), rows, columns)) <= 2 * most * most / 16'777'216.0F);
  }
}

struct BatchNormResult {
  std::vector<float> mean, inverse, output;
};

template <class Executor>
BatchNormResult batch_norm_by(const Executor& executor, std::int64_t rows, std::int64_t columns) {
  const auto size = static_cast<std::size_t>(columns);
  std::vector<float> input = draws(static_cast<std::size_t>(rows) * size, 5);
  std::vector<float> gain = draws(size, 6);
  std::vector<float> shift = draws(size, 7);
  std::vector<float> running_mean(size);
  std::vector<float> running_variance(size);
  BatchNormResult result{std::vector<float>(size), std::vector<float>(size), input};
  const Normalisation norm{.rows = rows,
                           .columns = columns,
                           .gain = view_of(gain),
                           .shift = view_of(shift),
                           .mean = view_of(result.mean),
                           .inverse_deviation = view_of(result.inverse)};
  kernels::batch_norm<float>(executor, norm, view_of(running_mean), view_of(running_variance), 0.1F,
                             view_of(result.output), view_of(input));
  return result;
}

template <class Executor>
std::vector<float> softmax_by(const Executor& executor, std::int64_t rows, std::int64_t columns) {
  std::vector<float> scores = draws(static_cast<std::size_t>(rows * columns), 8);
  std::vector<float> statistics(static_cast<std::size_t>(2 * rows));
  kernels::causal_softmax<float>(executor, statistics.data(), view_of(scores), view_of(scores), columns);
  return scores;
}

// Two orders of summing n numbers of [-2, 2] about a pivot differ by at most 2 n roundings of a sum below 2
// n; in practice roundings cancel to sqrt(n) of them, and a mean divides by n: 4 sqrt(n) 2^-24, here with
// room for the inverse deviation (1.7), whose slope by the variance is 1.7^3 / 2.
TEST_CASE("BatchNorm by a grid is BatchNorm by a loop but for the order of sums") {
  for (const auto& [rows, columns] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{7, 3}, {1000, 33}, {4096, 64}}) {
    const BatchNormResult grid = batch_norm_by(HostGrid().executor, rows, columns);
    const BatchNormResult loop = batch_norm_by(SerialExecutor(), rows, columns);
    const float bound = 4 * std::sqrt(static_cast<float>(rows)) / 16'777'216.0F * 2.5F;
    CHECK(largest_difference(grid.mean, loop.mean) <= bound);
    CHECK(largest_difference(grid.inverse, loop.inverse) <= bound);
    CHECK(largest_difference(grid.output, loop.output) <= 2 * bound);
  }
}

// Shares are at most 1 and their sums have `columns` terms below e^2.
TEST_CASE("a softmax by a grid is one by a loop but for the order of sums") {
  for (const std::int64_t columns : {1, 5, 32, 33, 300}) {
    const std::vector<float> grid = softmax_by(HostGrid().executor, 2 * columns, columns);
    const std::vector<float> loop = softmax_by(SerialExecutor(), 2 * columns, columns);
    CHECK(largest_difference(grid, loop) <= static_cast<float>(columns) / 16'777'216.0F);
  }
}

TEST_CASE("one value among many that is no number is found, wherever it is") {
  const HostGrid grid;
  constexpr std::int64_t count = 100'003;
  for (const std::int64_t place : {std::int64_t{0}, std::int64_t{31}, std::int64_t{50'001}, count - 1}) {
    std::vector<float> values(count, 1.0F);
    std::vector<float> found(1, 0.0F);
    kernels::find_non_finite<float>(grid.executor, view_of(found), view_of(values));
    CHECK(found[0] == 0.0F);
    values[static_cast<std::size_t>(place)] = std::numeric_limits<float>::quiet_NaN();
    kernels::find_non_finite<float>(grid.executor, view_of(found), view_of(values));
    CHECK(found[0] == 1.0F);
  }
}

}  // namespace lockstep::harness::cuda_executor_test
