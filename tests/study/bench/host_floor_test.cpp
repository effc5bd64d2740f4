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

// 1 x 1 convolutions of 1, 2, ... channels, which take 7 us a channel after what their host takes.
std::vector<KernelCase> timed_convolutions(Duration host_time, std::int64_t rows = 300) {
  std::vector<KernelCase> kernels;
  for (std::int64_t row = 1; row <= rows; ++row)
    kernels.push_back({.table = "conv2d",
                       .gpu = "a100",
                       .shape = ConvolutionShape{.in_channels = row},
                       .time = host_time + Duration::microseconds(7) * row,
                       .source = "ours"});
  return kernels;
}

TEST_CASE("before convolutions passes what their times have left where there is no work, all of it") {
  const Duration host_time = Duration::microseconds(190);
  const std::vector<KernelCase> kernels = timed_convolutions(host_time);
  const HostFloors floors(kernels);
  CHECK(floors.before(kernels[0]) == host_time);
  CHECK(floors.measured(kernels[0], Duration::microseconds(50)) == Duration::microseconds(190 + 50));
  CHECK(floors.hides(kernels[26]));        // 190 + 27 x 7 us are less than twice the host's
  CHECK_FALSE(floors.hides(kernels[27]));  // 190 + 28 x 7 us
}

TEST_CASE("kernels of a transform, few rows and a line that bends show no host before convolutions") {
  CHECK(HostFloors(timed_convolutions(Duration::microseconds(90))).before(
            timed_convolutions(Duration::microseconds(90))[0]) == Duration::zero());
  const std::vector<KernelCase> few = timed_convolutions(Duration::microseconds(190), 199);
  CHECK(HostFloors(few).before(few[0]) == Duration::zero());
  // The least tenth has 15.5 channels in the middle, those in the middle of all 150.5: the line between them is 420 us in
  // 135 channels steeper, and meets no work 15.5 x 420 / 135 = 48 us lower, at 142 us instead of 190.
  std::vector<KernelCase> bent = timed_convolutions(Duration::microseconds(190));
  for (std::size_t row = 100; row < bent.size(); ++row) bent[row].time += Duration::microseconds(420);
  CHECK(HostFloors(bent).before(bent[0]) == Duration::zero());
}

}  // namespace lockstep::host_floor_test
