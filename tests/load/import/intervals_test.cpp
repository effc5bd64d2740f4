#include "sim/load/import/intervals.h"

#include <doctest/doctest.h>

namespace lockstep::intervals_test {

TEST_CASE("what overlaps counts once, and empty stretches not at all") {
  const Intervals taken({{10, 20}, {15, 30}, {40, 40}, {50, 45}, {60, 70}});
  CHECK(taken.pieces().size() == 2);
  CHECK(taken.within({0, 100}) == 20 + 10);
  CHECK(taken.outside({0, 100}) == 100 - 30);
  CHECK(taken.within({25, 65}) == 5 + 5);
  CHECK(taken.within({30, 60}) == 0);
  CHECK(taken.outside({65, 62}) == 0);
  REQUIRE(taken.common({18, 65}).size() == 2);
  CHECK(taken.common({18, 65})[1].end == 65);
  CHECK(Intervals({}).within({0, 9}) == 0);
}

}  // namespace lockstep::intervals_test
