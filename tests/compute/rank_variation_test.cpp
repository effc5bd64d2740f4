#include "sim/compute/rank_variation.h"

#include <doctest/doctest.h>

#include <cmath>

namespace lockstep::rank_variation_test {

double excess(Fraction factor) {
  return static_cast<double>(factor.numerator) / static_cast<double>(factor.denominator) - 1;
}

constexpr RankSpread chips{.multiplying = Ratio::parts_per_million(15'000),
                           .moving = Ratio::parts_per_million(2'000)};
constexpr RankSpread noise{.passing = Ratio::percent(1), .passing_over = Duration::milliseconds(1)};

TEST_CASE("One GPU waits for nobody") {
  const WorkFactors alone = slowest_of(published_spread, {.ranks = 1, .apart = Duration::milliseconds(1)});
  for (const Fraction& factor : {alone.matrix, alone.memory, alone.launch}) CHECK(excess(factor) == 0);
}

// The expected maximum of 8 normal draws is 1.424 deviations.
TEST_CASE("What multiplies differs more from chip to chip than what moves bytes, and launches not at all") {
  const WorkFactors slowest = slowest_of(chips, {.ranks = 8, .apart = Duration::milliseconds(1)});
  CHECK(excess(slowest.matrix) == doctest::Approx(0.015 * 1.424).epsilon(0.001));
  CHECK(excess(slowest.memory) == doctest::Approx(0.002 * 1.424).epsilon(0.001));
  CHECK(excess(slowest.launch) == 0);
}

TEST_CASE("A slow chip costs the same however often ranks meet") {
  const auto met_after = [](std::int64_t milliseconds) {
    return excess(slowest_of(chips, {.ranks = 64, .apart = Duration::milliseconds(milliseconds)}).matrix);
  };
  CHECK(met_after(1) == met_after(1'000));
}

// A step of 100 ms in K stretches: each has a deviation of 1 % of sqrt(1 ms / (100 ms / K)), and the sum of K
// maxima is that times E[max of 8]. Of one stretch it is the maximum of the sum.
TEST_CASE("What passes costs sqrt(K) times as much where ranks meet K times as often") {
  for (const std::int64_t meetings : {1, 4, 25, 100}) {
    const Duration apart = scaled(Duration::milliseconds(100), 1, meetings);
    const double of_step = 0.01 / std::sqrt(100.0) * std::sqrt(static_cast<double>(meetings)) * 1.424;
    const WorkFactors slowest = slowest_of(noise, {.ranks = 8, .apart = apart});
    CHECK(excess(slowest.matrix) == doctest::Approx(of_step).epsilon(0.01));
    CHECK(excess(slowest.launch) == doctest::Approx(of_step).epsilon(0.01));
  }
}

// 3-4-5: deviations of 3 % that last and 4 % that pass are 5 % together.
TEST_CASE("What lasts and what passes are independent") {
  const RankSpread both{.multiplying = Ratio::percent(3),
                        .passing = Ratio::percent(4),
                        .passing_over = Duration::milliseconds(1)};
  const WorkFactors slowest = slowest_of(both, {.ranks = 2, .apart = Duration::milliseconds(1)});
  CHECK(excess(slowest.matrix) == doctest::Approx(0.05 * 0.564).epsilon(0.001));
}

TEST_CASE("More ranks, or meetings closer together, never take less") {
  double before_ranks = 0;
  for (const std::int64_t ranks : {1, 2, 3, 8, 100, 1'024, 100'000}) {
    double before = 0;
    for (const std::int64_t microseconds : {1'000'000, 10'000, 100, 1, 0}) {
      const Meetings meetings{.ranks = ranks, .apart = Duration::microseconds(microseconds)};
      const double now = excess(slowest_of(published_spread, meetings).memory);
      CHECK(now >= before);
      before = now;
    }
    CHECK(before >= before_ranks);
    before_ranks = before;
  }
}

}  // namespace lockstep::rank_variation_test
