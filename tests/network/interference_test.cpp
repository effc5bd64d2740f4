#include "sim/network/interference.h"

#include <doctest/doctest.h>

namespace lockstep::interference_test {

constexpr Interference a_gpu{.sms = 132, .is_by_bound = true, .memory = Bandwidth{3'000'000'000'000}};

TEST_CASE("Nothing held slows nothing") {
  CHECK(a_gpu.beside({}) == Slower{});
  CHECK(slowdown_of({.multiplying = 8, .moving = 8}, {}) == Ratio::one());
}

// 132 / (132 - 24) and 1 / (1 - 0.25), less one.
TEST_CASE("What multiplies lacks the SMs that are held, what moves bytes the bandwidth") {
  const Slower slower = a_gpu.beside({.collectives = 1, .sms = 24, .memory = Ratio::percent(25)});
  CHECK(slower.multiplying == ratio_down(24, 108));
  CHECK(slower.moving == share(Ratio::one(), 3));
  CHECK(slower.anything == Ratio{});
}

TEST_CASE("Two collectives slow as one does that holds as much as both") {
  const Slower two = a_gpu.beside({.collectives = 2, .sms = 16, .memory = Ratio::percent(10)});
  CHECK(two == a_gpu.beside({.collectives = 1, .sms = 16, .memory = Ratio::percent(10)}));
}

TEST_CASE("More held never slows less, and leaves at least half") {
  Slower before;
  for (std::int64_t held = 0; held <= 150; ++held) {
    const Slower slower = a_gpu.beside({.collectives = 1, .sms = held, .memory = Ratio::percent(held)});
    CHECK(slower.multiplying >= before.multiplying);
    CHECK(slower.moving >= before.moving);
    CHECK(slower.multiplying <= Ratio::one());
    CHECK(slower.moving <= Ratio::one());
    before = slower;
  }
}

TEST_CASE("What was measured of a machine slows every kernel alike") {
  const Interference measured{
      .slowdown = Ratio::percent(110), .sm_interference = Ratio::one() * 2, .sms = 100};
  const Slower slower = measured.beside({.collectives = 1, .sms = 10, .memory = Ratio::percent(50)});
  CHECK(slower == Slower{.anything = Ratio::percent(10) + share(Ratio::one() * 2, 10)});
}

// 360 GB/s sent pass a memory of 3,000 GB/s three times: 36 % of it.
TEST_CASE("What is sent takes its share of memory three times, and never more than there is") {
  CHECK(a_gpu.memory_share(Bandwidth{360'000'000'000}) == Ratio::percent(36));
  CHECK(a_gpu.memory_share(Bandwidth{3'000'000'000'000}) == Ratio::one());
  CHECK(a_gpu.memory_share(Bandwidth{0}) == Ratio{});
}

}  // namespace lockstep::interference_test
