#include "sim/base/series.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "sim/base/check.h"

namespace lockstep {
namespace {

// ln 2 in two parts: the first has so few bits that its multiples below 2^11 are exact.
constexpr double ln2_high = 0x1.62e42fefap-1;
constexpr double ln2_low = 0x1.cf79abc9e3b39p-40;

constexpr std::uint64_t mantissa_bits = 52;
constexpr std::int64_t exponent_bias = 1023;

double power_of_two(std::int64_t exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + exponent_bias) << mantissa_bits);
}

}  // namespace

double exponential(double x) {
  if (x < -700)
    return 0;
  x = std::min(x, 700.0);
  const auto twos = static_cast<std::int64_t>(x / ln2_high + (x < 0 ? -0.5 : 0.5));
  const double rest = x - static_cast<double>(twos) * ln2_high - static_cast<double>(twos) * ln2_low;
  double sum = 1;
  // Horner's scheme of the series; 0.35^15 / 15! is below 10^-18.
  for (int term = 14; term > 0; --term) sum = 1 + sum * rest / term;
  return sum * power_of_two(twos);
}

double natural_logarithm(double x) {
  LOCKSTEP_CHECK(x >= 0x1p-1022 && x <= 0x1.fffffffffffffp+1023,
                 "a logarithm is of a positive normal number");
  const auto bits = std::bit_cast<std::uint64_t>(x);
  std::int64_t twos = static_cast<std::int64_t>(bits >> mantissa_bits) - exponent_bias;
  double part = x / power_of_two(twos);  // in [1, 2)
  if (part > 1.4142135623730951) {
    part /= 2;
    ++twos;
  }
  // ln part = 2 artanh s, and |s| <= 0.172: s^27 / 27 is below 10^-21.
  const double s = (part - 1) / (part + 1);
  double sum = 0;
  for (int power = 25; power > 0; power -= 2) sum = sum * s * s + 1.0 / power;
  return 2 * s * sum + static_cast<double>(twos) * ln2_low + static_cast<double>(twos) * ln2_high;
}

}  // namespace lockstep
