#pragma once

// Randomness without a state: a number is a pure function of what it is for.
//
// Problem: a generator that is drawn from in event order gives other numbers when ranks are folded, threads
// are added or one event moves. Idea: hash the key (seed, rank, op), so a draw depends on nothing else
// (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011); the hash is three rounds of
// splitmix64 (Steele, Lea and Flood, OOPSLA 2014), a bijection of 64 bits at each round. Invariant: integers
// only; distributions are the caller's integer tables, never std:: ones. Cost: under 20 ns.

#include <cstdint>

#include "sim/base/check.h"
#include "sim/base/units.h"

namespace lockstep {

// Steele's finaliser: every input bit flips each output bit with probability near one half.
constexpr std::uint64_t mixed_bits(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

// 64 uniform bits for one draw; callers that need several draws for an op number them within `op`.
constexpr std::uint64_t keyed_random(std::uint64_t seed, std::uint64_t rank, std::uint64_t op) {
  return mixed_bits(mixed_bits(mixed_bits(seed) ^ rank) ^ op);
}

// Uniform in [0, bound): the high half of bits * bound, whose bias is below bound / 2^64.
constexpr std::uint64_t random_below(std::uint64_t bits, std::uint64_t bound) {
  LOCKSTEP_CHECK(bound > 0, "something is drawn from a range that is not empty");
  return static_cast<std::uint64_t>((static_cast<Unsigned128>(bits) * bound) >> 64U);
}

}  // namespace lockstep
