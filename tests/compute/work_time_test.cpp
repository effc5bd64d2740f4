// Fractions of work: what scales it exactly, and which of two is the larger.

#include "sim/compute/work_time.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace lockstep::work_time_test {
namespace {

TEST_CASE("The larger of two fractions is told by their quotients, whatever their denominators") {
  constexpr Fraction half{1, 2};
  constexpr Fraction third{3, 9};
  CHECK(third < half);
  CHECK_FALSE(half < third);
  CHECK(std::max(third, half).denominator == half.denominator);
}

TEST_CASE("Fractions of quantities near 2^62 are compared without overflow") {
  constexpr std::int64_t large = std::int64_t{1} << 62;
  CHECK(Fraction{large - 1, large} < Fraction{1, 1});
  CHECK(Fraction{1, 1} < Fraction{large, large - 1});
}

TEST_CASE("A ratio as a fraction scales a duration to the same picosecond") {
  const Duration duration = Duration::picoseconds(1'000'003);
  const Ratio ratio = Ratio::parts_per_million(1'234'567);
  CHECK(scaled(duration, as_fraction(ratio)) == scaled(duration, ratio));
}

TEST_CASE("Factors scale each part by its own, and factors of one change nothing") {
  const WorkTime time{Duration::picoseconds(30), Duration::picoseconds(20), Duration::picoseconds(10)};
  CHECK(scaled(time, WorkFactors{}).total() == time.total());
  const WorkTime slower = scaled(time, {.matrix = {2, 1}, .memory = {3, 2}, .launch = {1, 3}});
  CHECK(slower.matrix == Duration::picoseconds(30 * 2));
  CHECK(slower.memory == Duration::picoseconds(20 * 3 / 2));
  CHECK(slower.launch == Duration::picoseconds(4));  // ceil(10 / 3)
}

}  // namespace
}  // namespace lockstep::work_time_test
