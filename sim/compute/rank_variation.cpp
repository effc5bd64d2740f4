#include "sim/compute/rank_variation.h"

#include <array>
#include <bit>

namespace lockstep {
namespace {

// For n = 2^0 .. 2^20: the integral of x n phi(x) Phi(x)^(n-1), rounded to a thousandth.
constexpr std::array<std::int64_t, 21> expected_maxima_ppm{
    0,       564000,  1029000, 1424000, 1766000, 2070000, 2344000, 2595000, 2827000, 3044000, 3248000,
    3442000, 3626000, 3802000, 3971000, 4134000, 4291000, 4443000, 4590000, 4733000, 4872000};

}  // namespace

std::int64_t expected_maximum_ppm(std::int64_t ranks) {
  const auto count = static_cast<std::uint64_t>(ranks);
  const auto power = static_cast<std::size_t>(std::bit_width(count)) - 1;
  if (power + 1 >= expected_maxima_ppm.size())
    return expected_maxima_ppm.back();
  const std::int64_t below = expected_maxima_ppm[power];
  const std::int64_t above = expected_maxima_ppm[power + 1];
  const auto whole = static_cast<std::int64_t>(std::uint64_t{1} << power);
  return below + (above - below) * (ranks - whole) / whole;
}

}  // namespace lockstep
