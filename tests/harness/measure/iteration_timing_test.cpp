#include "validate/harness/measure/iteration_timing.h"

#include <doctest/doctest.h>

namespace lockstep::harness {
namespace {

TEST_CASE(
    "the hidden share counts time in which any collective ran once, and what lies before backward's end") {
  // Two that overlap in [2, 3] cover [1, 5]; backward ends at 4: 3 of 4 seconds are hidden.
  CHECK(hidden_share({{.start = 1, .end = 3}, {.start = 2, .end = 5}}, 4) == doctest::Approx(3.0 / 4));
  // The gap in [2, 3] counts for nothing; order does not matter.
  CHECK(hidden_share({{.start = 3, .end = 4}, {.start = 1, .end = 2}}, 3.5) == doctest::Approx(1.5 / 2));
  // One within another.
  CHECK(hidden_share({{.start = 0, .end = 4}, {.start = 1, .end = 2}}, 1) == doctest::Approx(1.0 / 4));
}

TEST_CASE("everything is hidden, nothing is, and nothing ran") {
  CHECK(hidden_share({{.start = 1, .end = 2}}, 9) == 1);
  CHECK(hidden_share({{.start = 1, .end = 2}}, 0.5) == 0);
  CHECK(hidden_share({}, 1) == 0);
}

TEST_CASE("blocks give at least the iterations asked for, and fewer where there is no time for them") {
  CHECK(count_blocks({.measured = 20, .most_seconds = 1e9}, 0.1) == 20 / steps_of_block);
  CHECK(count_blocks({.measured = 21, .most_seconds = 1e9}, 0.1) == 20 / steps_of_block + 1);
  // A block runs one step more than it times; two blocks fit.
  const double block_seconds = 1.0 * static_cast<double>(steps_of_block + 1);
  CHECK(count_blocks({.measured = 100, .most_seconds = 2.5 * block_seconds}, 1.0) == 2);
  CHECK(count_blocks({.measured = 100, .most_seconds = 0.1}, 1.0) == 1);
}

}  // namespace
}  // namespace lockstep::harness
