#include "sim/engine/jitter.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "sim/base/units.h"

namespace lockstep::jitter_test {

TEST_CASE("Without jitter and passing stragglers every factor is one") {
  const Jitter still({}, {}, 1);
  CHECK_FALSE(still.is_active());
  for (std::uint32_t rank = 0; rank < 10; ++rank) CHECK(still.factor_ppm(rank, rank) == million);
}

// The mean of n factors with deviation c around one strays by c / sqrt(n); four such are next to impossible.
TEST_CASE("Factors average to one and vary by rank and iteration") {
  const Jitter jitter({JitterDistribution::lognormal, 100'000}, {}, 3);
  CHECK(jitter.is_active());
  CHECK(jitter.factor_ppm(0, 0) != jitter.factor_ppm(1, 0));
  CHECK(jitter.factor_ppm(0, 0) != jitter.factor_ppm(0, 1));
  CHECK(jitter.factor_ppm(7, 9) == jitter.factor_ppm(7, 9));
  std::int64_t sum = 0;
  for (std::uint32_t rank = 0; rank < 100; ++rank)
    for (std::int64_t iteration = 0; iteration < 100; ++iteration) sum += jitter.factor_ppm(rank, iteration);
  CHECK(std::abs(sum / 10'000 - million) < 4 * 100'000 / 100);
}

TEST_CASE("Another seed draws other factors") {
  const JitterSpec spec{JitterDistribution::gamma, 200'000};
  CHECK(Jitter(spec, {}, 1).factor_ppm(0, 0) != Jitter(spec, {}, 2).factor_ppm(0, 0));
}

// Slow in a fraction p of all draws: of 10,000 draws p 10^4, within four times sqrt(p (1 - p) 10^4).
TEST_CASE("A passing straggler slows a rank as often as it says") {
  const Jitter jitter({}, {{.probability_ppm = 100'000, .slowdown_ppm = 2 * million}}, 5);
  std::int64_t slow = 0;
  for (std::int64_t iteration = 0; iteration < 10'000; ++iteration) {
    const std::int64_t factor = jitter.factor_ppm(3, iteration);
    CHECK((factor == million || factor == 2 * million));
    slow += factor == 2 * million ? 1 : 0;
  }
  CHECK(std::abs(slow - 1'000) < 4 * 30);
}

}  // namespace lockstep::jitter_test
