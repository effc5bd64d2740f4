// Benchmarks made from known constants give them back.

#include "sim/study/fit/core_use.h"

#include <doctest/doctest.h>

#include "tests/support/gloo_pair.h"

namespace lockstep::core_use_test {

using namespace testing;  // the pair of gloo_pair.h

InterferencePoint point_of(const Core& core, double bytes) {
  const Paces paces = paces_of(core, bytes);
  return {.bytes = Bytes{std::llround(bytes)},
          .compute_alone_s = 1,
          .compute_beside_s = paces.slowdown,
          .collectives = paces.slowdown / (bytes * paces.per_byte_s),
          .collective_alone_s = bytes * wire_s,
          .collective_beside_s = bytes * paces.per_byte_s};
}

TEST_CASE("the share and the wait that a benchmark was made with are found again") {
  const Core core{.per_byte_s = 7e-9, .share = 0.45, .wait_s = 0.003};
  const std::vector<InterferencePoint> points{point_of(core, mebibyte), point_of(core, 4 * mebibyte),
                                              point_of(core, 16 * mebibyte)};
  const Scenario scenario = gloo_pair();
  const Calibration calibration = using_core(scenario, {.per_byte_s = core.per_byte_s});
  const CoreUse found = fit_core_use(InterferenceBench(scenario), points, calibration, {.share = 0.6});
  CHECK(found.share == doctest::Approx(core.share).epsilon(0.02));
  CHECK(found.wait_s == doctest::Approx(core.wait_s).epsilon(0.05));
}

// At 3 ns of a core a byte the wire is full beside any share of 0.3 and more: no wait is needed to explain
// it.
TEST_CASE("where computing holds nothing up, no wait is found") {
  const Core core{.per_byte_s = 3e-9, .share = 0.5};
  const std::vector<InterferencePoint> points{point_of(core, mebibyte), point_of(core, 16 * mebibyte)};
  const Scenario scenario = gloo_pair();
  const Calibration calibration = using_core(scenario, {.per_byte_s = core.per_byte_s});
  const CoreUse found = fit_core_use(InterferenceBench(scenario), points, calibration, {.share = 0.5});
  CHECK(found.wait_s == 0);
}

TEST_CASE("one size of all-reduce tells the share alone") {
  const Core core{.per_byte_s = 8e-9, .share = 0.3};
  const std::vector<InterferencePoint> points{point_of(core, mebibyte)};
  const Scenario scenario = gloo_pair();
  const Calibration calibration = using_core(scenario, {.per_byte_s = core.per_byte_s});
  const CoreUse found = fit_core_use(InterferenceBench(scenario), points, calibration, {.share = 0.6});
  CHECK(found.share == doctest::Approx(core.share).epsilon(0.01));
  CHECK(found.wait_s == 0);
}

}  // namespace lockstep::core_use_test
