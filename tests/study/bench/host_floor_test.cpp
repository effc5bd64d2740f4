#include "sim/study/bench/host_floor.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace lockstep::host_floor_test {

// Products of 1, 2, ... us, which a host of `floor` starts.
std::vector<KernelCase> timed(Duration floor, std::int64_t rows = 100, const std::string& source = "ours") {
  std::vector<KernelCase> kernels;
  for (std::int64_t row = 1; row <= rows; ++row)
    kernels.push_back({.table = "gemm",
                       .gpu = "a100",
                       .shape = GemmShape{.m = row},
                       .time = std::max(floor, Duration::microseconds(row)),
                       .source = source});
  return kernels;
}

constexpr Duration host = Duration::microseconds(40);

TEST_CASE("where the shortest kernels are alike and long, that is the host") {
  const std::vector<KernelCase> kernels = timed(host);
  const HostFloors floors(kernels);
  for (const KernelCase& kernel : kernels) CHECK(floors.of(kernel) == host);
}

TEST_CASE("rows of less than twice the host's time are hidden by it") {
  const std::vector<KernelCase> kernels = timed(host);
  const HostFloors floors(kernels);
  CHECK(floors.hides(kernels[0]));
  CHECK(floors.hides(kernels[78]));        // 79 us
  CHECK_FALSE(floors.hides(kernels[79]));  // 80 us
}

TEST_CASE("kernels that get shorter and shorter show no host") {
  const std::vector<KernelCase> kernels = timed(Duration::zero());
  const HostFloors floors(kernels);
  CHECK(floors.of(kernels[0]) == Duration::zero());
  CHECK_FALSE(floors.hides(kernels[0]));
}

TEST_CASE("what a GPU itself keeps its stream for is no host") {
  const std::vector<KernelCase> kernels = timed(Duration::microseconds(9));
  CHECK(HostFloors(kernels).of(kernels[0]) == Duration::zero());
}

TEST_CASE("a row is measured as its host's time, or as the kernel and half of it") {
  const std::vector<KernelCase> kernels = timed(host);
  const HostFloors floors(kernels);
  CHECK(floors.measured(kernels[0], Duration::microseconds(3)) == host);
  CHECK(floors.measured(kernels[0], Duration::microseconds(100)) == Duration::microseconds(100 + 40 / 2));
  const std::vector<KernelCase> quick = timed(Duration::zero());
  CHECK(HostFloors(quick).measured(quick[0], Duration::microseconds(3)) == Duration::microseconds(3));
}

TEST_CASE("one product and a batch of them are two operators to a host") {
  std::vector<KernelCase> kernels = timed(host);
  KernelCase batched = kernels.front();
  batched.shape = GemmShape{.batch = 2};
  CHECK(HostFloors(kernels).of(batched) == Duration::zero());
}

TEST_CASE("a few rows show nothing") {
  const std::vector<KernelCase> kernels = timed(host, 15);
  CHECK(HostFloors(kernels).of(kernels[0]) == Duration::zero());
}

TEST_CASE("a host is its own table's, GPU's and source's, and belongs to no other") {
  std::vector<KernelCase> kernels = timed(host);
  const std::vector<KernelCase> quick = timed(Duration::zero(), 100, "theirs");
  kernels.insert(kernels.end(), quick.begin(), quick.end());
  const HostFloors floors(kernels);
  CHECK(floors.of(kernels.front()) == host);
  CHECK(floors.of(kernels.back()) == Duration::zero());
  KernelCase other = kernels.front();
  other.gpu = "h100";
  CHECK(floors.of(other) == Duration::zero());
}

}  // namespace lockstep::host_floor_test
