#pragma once

// Random numbers that begin parameters and make up data.
//
// Problem:   every rank, whatever its device, must begin with the same parameters and see the same samples.
// Idea:      a draw is a function of 64 keyed bits (sim/base/random.h). A normal one is the sum of their four
//            16-bit parts: integers until the last product, so equal on every machine, and no logarithm.
// Invariant: the mean is 0, the deviation 1; no draw is further from 0 than 3.5.
// Cost:      one hash a draw: a hundred million parameters begin in about a second.

#include <cstdint>

namespace lockstep::harness {

// Uniform in [-1, 1).
constexpr float uniform_draw(std::uint64_t bits) {
  constexpr float steps = 1 << 23;
  return static_cast<float>(static_cast<std::int64_t>(bits >> 40U) - (1 << 23)) / steps;
}

// A part is uniform on 0 ... 65535, its variance (2^32 - 1) / 12; four of them have a deviation of 37837.23.
constexpr float normal_draw(std::uint64_t bits) {
  std::int64_t sum = 0;
  for (unsigned shift = 0; shift < 64; shift += 16)
    sum += static_cast<std::int64_t>((bits >> shift) & 0xffffU);
  constexpr float twice_deviation = 2 * 37837.227F;
  return static_cast<float>(2 * sum - 4 * 65535) / twice_deviation;
}

}  // namespace lockstep::harness
