#include "validate/harness/device/executor.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace lockstep::harness::harness_device_executor_test {

struct Count {
  int nothing() const { return 0; }
  int combine(int a, int b) const { return a + b; }
};

// As strings under concatenation: a monoid whose order can be seen.
struct Span {
  std::int64_t least;
  std::int64_t most;
};
struct Spanned {
  Span nothing() const { return {INT64_MAX, INT64_MIN}; }
  Span combine(Span a, Span b) const { return {std::min(a.least, b.least), std::max(a.most, b.most)}; }
};

TEST_CASE("a map calls its formula once for each element, with its place and what is there") {
  std::vector<float> to(35, -1);
  std::vector<float> kept(35, 2);
  const std::vector<float> of_columns{10, 20, 30, 40, 50, 60, 70};
  SerialExecutor{}.map_in_rows(
      5, 7,
      [](std::int64_t row, std::int64_t column, float& output, float& counter, float own, float shift) {
        output = own + shift + static_cast<float>(1000 * row + column);
        counter += 1;
      },
      Operand<float, Use::writes>{to.data()}, Operand<float, Use::updates>{kept.data()},
      Operand<float, Use::reads>{kept.data()}, of_column(const_cast<float*>(of_columns.data())));
  for (std::size_t i = 0; i < 35; ++i) {
    const std::size_t column = i % 7;
    CHECK(to[i] == 2 + of_columns[column] + static_cast<float>(1000 * (i / 7) + column));
    CHECK(kept[i] == 3);
  }
}

TEST_CASE("every place of a matrix is visited once") {
  const std::int64_t rows = 5;
  const std::int64_t columns = 19;
  std::vector<int> visits(static_cast<std::size_t>(rows * columns));
  int* const at = visits.data();
  SerialExecutor{}.for_each_in_rows(
      rows, columns, [=](std::int64_t row, std::int64_t column) { ++at[row * columns + column]; });
  CHECK(visits == std::vector<int>(visits.size(), 1));
}

TEST_CASE("a reduction sees each of its elements once and finishes once, empty or not") {
  for (const std::int64_t rows : {0, 1, 3, 511, 512, 513, 1100}) {
    for (const std::int64_t columns : {1, 5, 64, 67}) {
      std::vector<int> by_row(static_cast<std::size_t>(rows), -1);
      std::vector<int> by_column(static_cast<std::size_t>(columns), -1);
      const auto one = [](std::int64_t, std::int64_t) { return 1; };
      SerialExecutor{}.reduce_rows(rows, columns, Count{}, one, [&](std::int64_t row, int sum) {
        by_row[static_cast<std::size_t>(row)] = sum;
      });
      SerialExecutor{}.reduce_columns(rows, columns, Count{}, one, [&](std::int64_t column, int sum) {
        by_column[static_cast<std::size_t>(column)] = sum;
      });
      CHECK(by_row == std::vector<int>(by_row.size(), static_cast<int>(columns)));
      CHECK(by_column == std::vector<int>(by_column.size(), static_cast<int>(rows)));
    }
  }
}

TEST_CASE("a reduction of rows stays in its row, one of columns in its column") {
  const auto place = [](std::int64_t row, std::int64_t column) {
    return Span{row * 100 + column, row * 100 + column};
  };
  SerialExecutor{}.reduce_rows(4, 70, Spanned{}, place, [](std::int64_t row, Span span) {
    CHECK(span.least == row * 100);
    CHECK(span.most == row * 100 + 69);
  });
  SerialExecutor{}.reduce_columns(600, 3, Spanned{}, place, [](std::int64_t column, Span span) {
    CHECK(span.least == column);
    CHECK(span.most == 599 * 100 + column);
  });
}

}  // namespace lockstep::harness::harness_device_executor_test
