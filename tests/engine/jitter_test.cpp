#include "sim/engine/jitter.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "sim/base/units.h"

namespace lockstep::jitter_test {

TEST_CASE("Without jitter and passing stragglers every factor is one") {
  const Jitter still({}, {}, 1);
  CHECK_FALSE(still.is_active());
  for (std::uint32_t rank = 0; rank < 10; ++rank) CHECK(still.factor(rank, rank) == Ratio::one());
}

// The mean of n factors with deviation c around one strays by c / sqrt(n); four such are next to impossible.
TEST_CASE("Factors average to one and vary by rank and iteration") {
  const Jitter jitter({JitterDistribution::lognormal, Ratio::percent(10)}, {}, 3);
  CHECK(jitter.is_active());
  CHECK(jitter.factor(0, 0) != jitter.factor(1, 0));
  CHECK(jitter.factor(0, 0) != jitter.factor(0, 1));
  CHECK(jitter.factor(7, 9) == jitter.factor(7, 9));
  Ratio sum;
  for (std::uint32_t rank = 0; rank < 100; ++rank)
    for (std::int64_t iteration = 0; iteration < 100; ++iteration) sum += jitter.factor(rank, iteration);
  CHECK(std::abs((share(sum, 10'000) - Ratio::one()).parts_per_million()) < 4 * 100'000 / 100);
}

TEST_CASE("Another seed draws other factors") {
  const JitterSpec spec{JitterDistribution::gamma, Ratio::percent(20)};
  CHECK(Jitter(spec, {}, 1).factor(0, 0) != Jitter(spec, {}, 2).factor(0, 0));
}

// Slow in a fraction p of all draws: of 10,000 draws p 10^4, within four times sqrt(p (1 - p) 10^4).
TEST_CASE("A passing straggler slows a rank as often as it says") {
  const Jitter jitter({}, {{.probability = Ratio::percent(10), .slowdown = Ratio::one() * 2}}, 5);
  std::int64_t slow = 0;
  for (std::int64_t iteration = 0; iteration < 10'000; ++iteration) {
    const Ratio factor = jitter.factor(3, iteration);
    CHECK((factor == Ratio::one() || factor == Ratio::one() * 2));
    slow += factor == Ratio::one() * 2 ? 1 : 0;
  }
  CHECK(std::abs(slow - 1'000) < 4 * 30);
}

}  // namespace lockstep::jitter_test
