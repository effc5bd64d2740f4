#include "sim/compute/rank_variation.h"

#include <algorithm>
#include <array>
#include <bit>

namespace lockstep {
namespace {

// For n = 2^0 .. 2^20: the integral of x n phi(x) Phi(x)^(n-1), rounded to a thousandth; in parts per million.
constexpr std::array<std::int64_t, 21> expected_maxima{
    0,       564000,  1029000, 1424000, 1766000, 2070000, 2344000, 2595000, 2827000, 3044000, 3248000,
    3442000, 3626000, 3802000, 3971000, 4134000, 4291000, 4443000, 4590000, 4733000, 4872000};

// The greatest whole number whose square is not more.
std::int64_t square_root(std::int64_t square) {
  std::int64_t root = 0;
  for (std::int64_t step = std::int64_t{1} << 31U; step > 0; step /= 2)
    if ((root + step) * (root + step) <= square)
      root += step;
  return root;
}

// Of what passes, by chance, in a stretch that long.
std::int64_t passing_variance(const RankSpread& spread, Duration apart) {
  constexpr Duration shortest = Duration::microseconds(1);
  const std::int64_t passing = spread.passing.parts_per_million();
  return scaled(Duration::picoseconds(passing * passing), spread.passing_over.picoseconds(),
                std::max(apart, shortest).picoseconds())
      .picoseconds();
}

}  // namespace

Ratio expected_maximum(std::int64_t ranks) {
  const auto count = static_cast<std::uint64_t>(ranks);
  const auto power = static_cast<std::size_t>(std::bit_width(count)) - 1;
  if (power + 1 >= expected_maxima.size())
    return Ratio::parts_per_million(expected_maxima.back());
  const std::int64_t below = expected_maxima[power];
  const std::int64_t above = expected_maxima[power + 1];
  const auto whole = static_cast<std::int64_t>(std::uint64_t{1} << power);
  return Ratio::parts_per_million(below + (above - below) * (ranks - whole) / whole);
}

WorkFactors slowest_of(const RankSpread& spread, const Meetings& meetings) {
  const auto square = [](Ratio deviation) {
    return deviation.parts_per_million() * deviation.parts_per_million();
  };
  const std::int64_t passing = passing_variance(spread, meetings.apart) - square(spread.drawn);
  const Ratio maximum = expected_maximum(meetings.ranks);
  const auto factor = [&](Ratio lasting) {
    const std::int64_t variance = std::max<std::int64_t>(square(lasting) + passing, 0);
    const Ratio deviation = Ratio::parts_per_million(square_root(variance));
    return as_fraction(Ratio::one() + scaled_down(deviation, maximum));
  };
  return {.matrix = factor(spread.multiplying),
          .memory = factor(spread.moving),
          .launch = factor(spread.launching)};
}

}  // namespace lockstep
