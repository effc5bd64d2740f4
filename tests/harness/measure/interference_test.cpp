#include "validate/harness/measure/interference.h"

#include <doctest/doctest.h>

#include "tests/harness/measure/virtual_bench.h"

namespace lockstep::harness::interference_test {

constexpr std::int64_t mebibyte = 1 << 20;

constexpr double tolerance = 1e-6;
// A run holds a thousand all-reduces or more, of which the last may be counted or not.
constexpr double count_tolerance = 2e-3;

struct Measured {
  std::vector<Interference> entries;
  std::vector<FailedMeasurement> failures;
  double pass = 0;  // seconds of kernels
};

Measured measure(const VirtualTimes& times, bool starts_at_once = true) {
  VirtualBench virtual_bench(times);
  virtual_bench.communicator.starts_at_once = starts_at_once;
  Measured measured;
  measured.entries = measure_interference(virtual_bench.bench, virtual_bench.trainer, {mebibyte});
  measured.failures = virtual_bench.bench.failures;
  measured.pass = static_cast<double>(virtual_bench.kernels_of_pass()) * times.kernel;
  return measured;
}

void check_no_interference(double collective) {
  CAPTURE(collective);
  const Measured measured = measure({.collective = collective});
  REQUIRE(measured.failures.empty());
  const Interference& entry = measured.entries.at(0);
  CHECK(entry.compute_alone == doctest::Approx(measured.pass).epsilon(tolerance));
  CHECK(entry.compute_beside / entry.compute_alone == doctest::Approx(1).epsilon(tolerance));
  CHECK(entry.collective_alone == doctest::Approx(collective).epsilon(tolerance));
  CHECK(entry.collective_beside / entry.collective_alone == doctest::Approx(1).epsilon(tolerance));
  CHECK(entry.collectives == doctest::Approx(measured.pass / collective).epsilon(count_tolerance));
}

// The host starts an all-reduce in 15 us and a kernel in 5 us: what it does for one must not count for the other.
TEST_CASE("where nothing interferes computing and all-reduces are both reported as 1.00 of themselves") {
  for (const double collective : {40e-6, 60e-6, 140e-6, 600e-6, 5e-3}) check_no_interference(collective);
}

TEST_CASE("a slowdown by a factor is reported as that factor, of computing and of all-reduces apart") {
  const Measured measured = measure({.collective = 120e-6, .compute_slowdown = 1.3, .traffic_slowdown = 1.5});
  REQUIRE(measured.failures.empty());
  const Interference& entry = measured.entries.at(0);
  // Between two all-reduces their marks pass at once, so that one always runs.
  CHECK(entry.covered == doctest::Approx(1).epsilon(tolerance));
  CHECK(entry.compute_beside / entry.compute_alone == doctest::Approx(1.3).epsilon(tolerance));
  CHECK(entry.collective_beside / entry.collective_alone == doctest::Approx(1.5).epsilon(tolerance));
}

TEST_CASE("all-reduces that stand still for part of the computing give a reason and no number") {
  // Each waits for the computing that was asked for before it, and a host that is ahead asks for it all.
  const Measured measured = measure({.collective = 40e-6}, false);
  CHECK(measured.entries.empty());
  REQUIRE(measured.failures.size() == 1);
  CHECK(measured.failures[0].measurement == "interference");
  CHECK(measured.failures[0].bytes == mebibyte);
  CHECK(measured.failures[0].reason.find("what ran beside the computing") == 0);
}

TEST_CASE("all-reduces that end faster than a host can start them give a reason and no number") {
  // In 8 us, where a call takes 15: the device reduces half of the time, alone as well as beside computing.
  const Measured measured = measure({.collective = 8e-6});
  CHECK(measured.entries.empty());
  CHECK(measured.failures.size() == 1);
}

TEST_CASE("a host that cannot keep the device busy gives a reason and no number") {
  // A kernel of 4 us is over before the next one is launched, in 5 us.
  const Measured measured = measure({.kernel = 4e-6});
  CHECK(measured.entries.empty());
  REQUIRE(measured.failures.size() == 1);
  CHECK(measured.failures[0].reason.find("the host could not keep the device busy") == 0);
}

TEST_CASE("kernels that are loaded when they are first launched do not shorten what is measured") {
  // The first pass alone takes seconds, as if one were enough for a run.
  const Measured measured = measure({.cold_launches = 100, .cold_launch = 20e-3, .collective = 60e-6});
  REQUIRE(measured.failures.empty());
  const Interference& entry = measured.entries.at(0);
  CHECK(entry.compute_alone == doctest::Approx(measured.pass).epsilon(tolerance));
  CHECK(entry.compute_beside / entry.compute_alone == doctest::Approx(1).epsilon(tolerance));
}

}  // namespace lockstep::harness::interference_test
