#include "sim/base/median.h"

#include <doctest/doctest.h>

namespace lockstep::median_test {

TEST_CASE("the median is the value in the middle, or between the two in the middle") {
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 4}) == 4);
  CHECK(median({8, 2, 1, 100}) == (2 + 8) / 2.0);
}

TEST_CASE("one wild value moves no median of three to another value than the measured ones") {
  CHECK(median({1, 2, 1e9}) == 2);
}

TEST_CASE("a median of nothing is a mistake of the program") {
  CHECK_THROWS_AS(median({}), InternalError);
}

}  // namespace lockstep::median_test
