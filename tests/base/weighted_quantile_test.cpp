#include "sim/base/weighted_quantile.h"

#include <doctest/doctest.h>

namespace lockstep::weighted_quantile_test {

TEST_CASE("equal weights count like an ordinary quantile that makes up no value") {
  CHECK(weighted_quantile({{4, 1}, {1, 1}, {3, 1}, {2, 1}}, 0.5) == 2);
  CHECK(weighted_quantile({{4, 1}, {1, 1}, {3, 1}, {2, 1}}, 0.51) == 3);
  CHECK(weighted_quantile({}, 0.5) == 0);
}

TEST_CASE("a value takes as much of the way as it weighs") {
  CHECK(weighted_quantile({{1, 8}, {2, 1}, {3, 1}}, 0.8) == 1);
  CHECK(weighted_quantile({{1, 8}, {2, 1}, {3, 1}}, 0.9) == 2);
  CHECK(weighted_quantile({{1, 8}, {2, 1}, {3, 1}}, 1.0) == 3);
}

TEST_CASE("weights that are fractions reach the quantile they add up to") {
  std::vector<std::pair<double, double>> tenths;
  for (int value = 1; value <= 10; ++value) tenths.emplace_back(value, 0.1);
  CHECK(weighted_quantile(tenths, 0.9) == 9);
  CHECK(weighted_quantile(tenths, 0.1) == 1);
}

}  // namespace lockstep::weighted_quantile_test
