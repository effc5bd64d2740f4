#include "validate/harness/measure/iteration_timing.h"

#include <doctest/doctest.h>

#include "tests/harness/measure/virtual_bench.h"

namespace lockstep::harness::iteration_timing_test {

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

TEST_CASE("iteration 1 is warm, and no later one waits for a mark to be made") {
  // Loading a kernel takes the host 20 ms; making a mark 10 ms, longer than an iteration.
  const VirtualTimes times{.event_creation = 10e-3, .cold_launches = 60, .cold_launch = 20e-3};
  VirtualBench virtual_bench(times);
  const auto timings = time_iterations(virtual_bench.bench, virtual_bench.trainer,
                                       {.bucket_caps_mb = {25},
                                        .overlaps = {true},
                                        .counts = {.warm_up = 1, .measured = 5, .most_seconds = 60}});
  const Statistics& iteration = timings.at(0).step.iteration;
  CHECK(iteration.p90 == doctest::Approx(iteration.least).epsilon(1e-6));
  // Its marks are made in it, one for each of 10 ms; no kernel is loaded.
  CHECK(timings[0].first_iteration < times.cold_launch + 20 * times.event_creation);
}

}  // namespace lockstep::harness::iteration_timing_test
