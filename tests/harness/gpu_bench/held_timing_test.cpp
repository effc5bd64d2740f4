#include "validate/harness/gpu_bench/held_timing.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/harness/gpu_bench/virtual_stage.h"
#include "validate/harness/measure/measurement.h"

namespace lockstep::harness::held_timing_test {

constexpr double launch_seconds = 5e-6;

std::optional<KernelTime> time_kernel(VirtualStage& stage, double seconds, const HeldTiming& timing = {}) {
  return time_held(
      stage, [&](std::int64_t) { stage.device().launch(seconds); }, timing);
}

// Launched onto an idle stream it would be seen to take the launch of the mark after it as well.
TEST_CASE("a kernel shorter than its launch is timed without its launch") {
  VirtualStage stage(launch_seconds);
  CHECK(time_of(stage.device(), [&] { stage.device().launch(2e-6); }) > 4e-6);
  for (const double seconds : {0.5e-6, 2e-6, 10e-6, 300e-6, 40e-3}) {
    const auto time = time_kernel(stage, seconds);
    REQUIRE(time.has_value());
    CHECK(time->median_us == doctest::Approx(seconds * 1e6).epsilon(1e-6));
    CHECK(time->p10_us == doctest::Approx(seconds * 1e6).epsilon(1e-6));
    CHECK(time->clock_mhz == 1980);
  }
}

// 64 calls of 50 us are 3.2 ms of launches; a hold of 30 us a call ends before them and is doubled.
TEST_CASE("where the host needs longer than the first hold, kernels are held longer") {
  VirtualStage stage(50e-6);
  const auto time = time_kernel(stage, 1e-6);
  REQUIRE(time.has_value());
  CHECK(time->median_us == doctest::Approx(1).epsilon(1e-6));
}

// 64 launches of 2 ms outlast the longest hold of 50 ms.
TEST_CASE("a host that is slower than any hold gives no time at all") {
  VirtualStage stage(2e-3);
  CHECK_FALSE(time_kernel(stage, 1e-6).has_value());
}

TEST_CASE("samples are at least five and fill the time that is theirs") {
  VirtualStage stage(launch_seconds);
  // One call of 40 ms is a sample; 60 ms are one and a half of them.
  CHECK(time_kernel(stage, 40e-3)->samples == 5);
  // 100 calls would fill a sample of 300 us; 64 are made, 192 us: 312 samples fit, 20 are enough.
  CHECK(time_kernel(stage, 3e-6)->samples == 20);
}

TEST_CASE("every call has a number of its own, so that each takes other memory") {
  VirtualStage stage(launch_seconds);
  std::set<std::int64_t> numbers;
  std::int64_t calls = 0;
  time_held(stage, [&](std::int64_t number) {
    numbers.insert(number);
    ++calls;
    stage.device().launch(2e-6);
  });
  CHECK(static_cast<std::int64_t>(numbers.size()) == calls);
  CHECK(*numbers.begin() == 0);
  CHECK(*numbers.rbegin() == calls - 1);
}

}  // namespace lockstep::harness::held_timing_test
