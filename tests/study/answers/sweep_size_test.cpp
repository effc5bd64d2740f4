// What is too much to sweep, said before it begins.

#include "sim/study/answers/sweep_size.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"

namespace lockstep::sweep_size_test {

const auto at_once = [](std::size_t) {};

TEST_CASE("A million cells are swept, one more is refused with the count unless that is accepted") {
  refuse_large_sweep({.cells = most_cells}, at_once);
  CHECK_THROWS_WITH_AS(refuse_large_sweep({.cells = most_cells + 1}, at_once),
                       doctest::Contains("found 1000001 cells, which take about"), ConfigError);
  refuse_large_sweep({.cells = most_cells + 1, .is_accepted = true}, at_once);
}

TEST_CASE("What no memory holds is refused even where any size is accepted") {
  refuse_large_sweep({.cells = most_cells_at_all, .is_accepted = true}, at_once);
  CHECK_THROWS_WITH_AS(refuse_large_sweep({.cells = most_cells_at_all + 1, .is_accepted = true}, at_once),
                       doctest::Contains("--shard"), ConfigError);
}

TEST_CASE("Cells that are measured lie within the sweep, spread over it, and few sweeps need it") {
  std::vector<std::size_t> places;
  refuse_large_sweep({.cells = 1000}, [&](std::size_t place) { places.push_back(place); });
  REQUIRE(places.size() == 16);  // eight, twice each
  CHECK(places.front() < 1000 / 8);
  CHECK(places.back() >= 7 * (1000 / 8));
  CHECK(places.back() < 1000);
  refuse_large_sweep({.cells = 60}, [](std::size_t) { FAIL("60 cells of a minute are an hour"); });
}

}  // namespace lockstep::sweep_size_test
