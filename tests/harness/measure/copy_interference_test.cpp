#include "validate/harness/measure/copy_interference.h"

#include <doctest/doctest.h>

#include "tests/harness/measure/virtual_bench.h"

namespace lockstep::harness::copy_interference_test {

constexpr double tolerance = 1e-3;  // a run lasts half a second or more

std::optional<CopyInterference> measure(const VirtualTimes& times) {
  VirtualBench virtual_bench(times);
  const auto measured = measure_copy_interference(virtual_bench.bench, virtual_bench.trainer);
  CHECK(measured.has_value() == virtual_bench.bench.failures.empty());
  return measured;
}

TEST_CASE("copies that cost computing nothing are reported as 1.00, and cover all of it") {
  const auto measured = measure({.copy = 160e-6});
  REQUIRE(measured.has_value());
  CHECK(measured->compute_beside / measured->compute_alone == doctest::Approx(1).epsilon(tolerance));
  CHECK(measured->copy_alone == doctest::Approx(160e-6).epsilon(tolerance));
  CHECK(measured->copy_beside == doctest::Approx(160e-6).epsilon(tolerance));
  CHECK(measured->covered == doctest::Approx(1).epsilon(tolerance));
}

// 1,024 copies fill the queue; computing that waited for room in it would run beside a fifth of them.
TEST_CASE("a slowdown by copies is reported whole, however many copies fit the queue") {
  for (const double copy : {20e-6, 160e-6, 2e-3}) {
    CAPTURE(copy);
    const auto measured = measure({.copy = copy, .compute_slowdown = 1.4, .traffic_slowdown = 1.1});
    REQUIRE(measured.has_value());
    CHECK(measured->compute_beside / measured->compute_alone == doctest::Approx(1.4).epsilon(tolerance));
    CHECK(measured->copy_beside / measured->copy_alone == doctest::Approx(1.1).epsilon(tolerance));
  }
}

TEST_CASE("passes that load kernels are not timed") {
  const VirtualTimes times{.cold_launches = 100, .cold_launch = 20e-3};
  VirtualBench virtual_bench(times);
  const auto measured = measure_copy_interference(virtual_bench.bench, virtual_bench.trainer);
  REQUIRE(measured.has_value());
  const double pass = static_cast<double>(virtual_bench.kernels_of_pass()) * times.kernel;
  CHECK(measured->compute_alone == doctest::Approx(pass).epsilon(tolerance));
}

TEST_CASE("a host that cannot keep the device busy gives a reason and no number") {
  VirtualBench virtual_bench({.kernel = 4e-6});
  CHECK_FALSE(measure_copy_interference(virtual_bench.bench, virtual_bench.trainer).has_value());
  REQUIRE(virtual_bench.bench.failures.size() == 1);
  CHECK(virtual_bench.bench.failures[0].measurement == "copy_interference");
}

}  // namespace lockstep::harness::copy_interference_test
