// Times in closed form: work of 100 TFLOP in a second at boost, of so many watts.
//
// With y, what would be drawn over what may be: y^(1/3) times as long while voltage falls, 0.8^2 y below its
// floor.

#include "sim/compute/clock.h"

#include <doctest/doctest.h>

#include "sim/compute/kernel_time.h"
#include "sim/study/bench/kernel_prediction.h"
#include "tests/support/scenarios.h"

namespace lockstep::clock_test {

constexpr std::int64_t tera = 1'000'000'000'000;
constexpr Duration second = Duration::seconds(1);
constexpr Flops work{100 * tera};

// Drawing 100 W.
Duration within(Milliwatts board) {
  return within_limit(second, work, {.board = board, .draw = {1'000}});
}

TEST_CASE("what draws no more than the board may keeps its boost clock") {
  CHECK(within({100'000}) == second);
  CHECK(within({400'000}) == second);
}

TEST_CASE("no limit, and units of which nobody knows what they draw, keep the boost clock") {
  CHECK(within({0}) == second);
  CHECK(within_limit(second, work, {.board = {1'000}, .draw = {0}}) == second);
}

// 100 W of 64: y = 1.5625, whose cube root is 1.160397208...; of 80: y = 1.25, 1.077217345...
TEST_CASE("the clock falls as the cube root of what may be drawn") {
  CHECK(within({64'000}).in_seconds() == doctest::Approx(1.160397208).epsilon(1e-9));
  CHECK(within({80'000}).in_seconds() == doctest::Approx(1.077217345).epsilon(1e-9));
}

TEST_CASE("below the floor of voltage the clock falls as what may be drawn") {
  CHECK(within({32'000}) == Duration::milliseconds(2'000));  // 0.64 x 100 / 32
  CHECK(within({16'000}) == Duration::milliseconds(4'000));
}

// Both laws say 1.25 at 51.2 W, where 0.64 y = y^(1/3).
TEST_CASE("the two laws meet at the floor") {
  CHECK(within({51'200}) == Duration::milliseconds(1'250));
  CHECK(within({51'201}) < Duration::milliseconds(1'250));
  CHECK(within({51'199}) > Duration::milliseconds(1'250));
  CHECK(within({51'199}).in_seconds() == doctest::Approx(1.25).epsilon(1e-4));
}

TEST_CASE("work that waits for something else is slowed less, down to not at all") {
  const PowerLimit limit{.board = {80'000}, .draw = {1'000}};
  const Duration busy = within_limit(second, work, limit);
  const Duration waiting = within_limit(scaled(second, 9, 8), work, limit);
  CHECK(busy < waiting);
  CHECK(scaled(waiting, 8, 9) < busy);
  CHECK(within_limit(scaled(second, 5, 4), work, limit) == scaled(second, 5, 4));
}

// H. He (2024): products of 8192 x 8192 x 8192 on an A100 of 400 W, 295 TFLOP/s of zeros and 257 of random
// numbers.
TEST_CASE("the constant of A100 kernels says how much slower than zeros it multiplies random numbers") {
  const GpuSpec gpu = load_gpu("a100_sxm_80gb", shipped_profiles());
  const Duration random = within_limit(second, Flops{295 * tera}, power_limit(gpu, Precision::bf16));
  CHECK(295 / random.in_seconds() == doctest::Approx(257).epsilon(0.03));
}

}  // namespace lockstep::clock_test
