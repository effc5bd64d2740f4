#include "sim/study/parallel.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

namespace lockstep::parallel_test {

TEST_CASE("every task runs once, however many threads there are, and what it wrote can be read") {
  for (const int threads : {0, 1, 4}) {
    std::vector<int> runs(1000);
    run_in_parallel(threads, runs.size(), [&](std::size_t index) { ++runs[index]; });
    CHECK(runs == std::vector<int>(1000, 1));
  }
  run_in_parallel(2, 0, [](std::size_t) { FAIL("there is no task"); });
}

TEST_CASE("what a task throws is thrown to who asked for it") {
  const auto fail_at_seven = [](std::size_t index) {
    if (index == 7)
      throw std::runtime_error("seven");
  };
  CHECK_THROWS_WITH_AS(run_in_parallel(4, 100, fail_at_seven), "seven", std::runtime_error);
}

}  // namespace lockstep::parallel_test
