#include "validate/harness/measure/kernel_curves.h"

#include <doctest/doctest.h>

#include "tests/harness/measure/virtual_bench.h"
#include "validate/harness/measure/bucket_copies.h"

namespace lockstep::harness::kernel_curves_test {

void check_times(const CallTimes& measured, const VirtualTimes& times, double kernels) {
  CHECK(measured.from_idle.median == doctest::Approx(times.launch + kernels * times.kernel).epsilon(1e-6));
  REQUIRE(measured.back_to_back.has_value());
  CHECK(measured.back_to_back->median == doctest::Approx(kernels * times.kernel).epsilon(1e-6));
}

TEST_CASE("products and copies are timed with and without their launch") {
  const VirtualTimes times{.launch = 1e-3, .kernel = 50e-3};  // so long that the smallest is the largest
  VirtualBench virtual_bench(times);
  const auto products = measure_matmuls(virtual_bench.bench, Type::fp32);
  REQUIRE(products.size() == 1);
  check_times(products[0].time, times, 1);
  const auto copies = measure_memory_copies(virtual_bench.bench);
  REQUIRE(copies.size() == 1);
  check_times(copies[0].time, times, 1);
}

TEST_CASE("copies into a bucket take a kernel for each tensor") {
  const VirtualTimes times;
  VirtualBench virtual_bench(times);
  for (const TensorTiming& timing : measure_bucket_copies(virtual_bench.bench))
    check_times(timing.time, times, static_cast<double>(timing.tensors));
}

}  // namespace lockstep::harness::kernel_curves_test
