#include "validate/harness/measure/collective_curve.h"

#include <doctest/doctest.h>

#include "tests/harness/measure/virtual_bench.h"

namespace lockstep::harness::collective_curve_test {

TEST_CASE("back to back an all-reduce takes what the device needs, from idle the host's launch as well") {
  const VirtualTimes times{.collective = 60e-6};
  VirtualBench virtual_bench(times);
  const auto points = measure_collective_curve(virtual_bench.bench, 4096);
  REQUIRE(points.size() == 3);  // 1, 2 and 4 KiB
  for (const CollectivePoint& point : points) {
    // After the first mark the host records the all-reduce's own and starts it.
    CHECK(point.time.from_idle.median ==
          doctest::Approx(times.event + times.collective_call + times.collective).epsilon(1e-6));
    REQUIRE(point.time.back_to_back.has_value());
    CHECK(point.time.back_to_back->median == doctest::Approx(times.collective).epsilon(1e-6));
    CHECK(point.time.time().median == point.time.back_to_back->median);
  }
}

}  // namespace lockstep::harness::collective_curve_test
