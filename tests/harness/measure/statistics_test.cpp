#include "validate/harness/measure/statistics.h"

#include <doctest/doctest.h>

namespace lockstep::harness::statistics_test {

TEST_CASE("quantiles interpolate between neighbours, in whatever order values come") {
  // 0 to 10: the quantile of share s is 10 s.
  std::vector<double> values;
  for (int value = 10; value >= 0; --value) values.push_back(value);
  const Statistics statistics = summarise(values);
  CHECK(statistics.median == doctest::Approx(5));
  CHECK(statistics.p10 == doctest::Approx(1));
  CHECK(statistics.p90 == doctest::Approx(9));
  CHECK(statistics.mean == doctest::Approx(5));
  CHECK(statistics.least == 0);
  CHECK(statistics.count == 11);
  CHECK(quantile({1, 2}, 0.25) == doctest::Approx(1.25));
}

TEST_CASE("of one value everything is that value, of none 0") {
  CHECK(summarise({7}).p90 == 7);
  CHECK(summarise({7}).least == 7);
  CHECK(summarise({}).median == 0);
  CHECK(summarise({}).count == 0);
  CHECK(median({}) == 0);
}

TEST_CASE("one value that is far off moves the mean and not the median") {
  CHECK(summarise({1, 1, 1, 1, 101}).median == 1);
  CHECK(summarise({1, 1, 1, 1, 101}).mean == doctest::Approx(21));
}

}  // namespace lockstep::harness::statistics_test
