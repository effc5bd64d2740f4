#pragma once

// What the time of some work is made of: matrix units, memory, and what launching it costs.
//
// Problem:   a step that was measured says by how much the model of computing misses kernels; the launches in
//            it cost what they cost on this host, whatever the kernels do.
// Idea:      three parts that add up, and a factor for each; fractions, so that what one measured step gives is
//            exact, which no Ratio in parts per million is.
// Invariant: factors of one change nothing; more of a part never takes less time.

#include <cstdint>

#include "sim/base/units.h"

namespace lockstep {

struct Fraction {
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;

  // Both are fractions of what is not negative.
  friend constexpr bool operator<(Fraction left, Fraction right) {
    return static_cast<Unsigned128>(left.numerator) * static_cast<Unsigned128>(right.denominator) <
           static_cast<Unsigned128>(right.numerator) * static_cast<Unsigned128>(left.denominator);
  }
};

constexpr Fraction as_fraction(Ratio ratio) {
  return {ratio.parts_per_million(), Ratio::one().parts_per_million()};
}

constexpr Duration scaled(Duration duration, Fraction fraction) {
  return scaled(duration, fraction.numerator, fraction.denominator);
}

struct WorkTime {
  Duration matrix;
  Duration memory;
  Duration launch;  // what a launch adds where its kernel is too short to hide it

  constexpr Duration device() const { return matrix + memory; }
  constexpr Duration total() const { return matrix + memory + launch; }

  constexpr WorkTime& operator+=(const WorkTime& other) {
    matrix += other.matrix;
    memory += other.memory;
    launch += other.launch;
    return *this;
  }
  friend constexpr WorkTime operator*(const WorkTime& time, std::int64_t times) {
    return {time.matrix * times, time.memory * times, time.launch * times};
  }
};

// What was measured over what is modelled.
struct WorkFactors {
  Fraction matrix;
  Fraction memory;
  Fraction launch;
};

// Each part rounded up.
constexpr WorkTime scaled(const WorkTime& time, const WorkFactors& factors) {
  return {scaled(time.matrix, factors.matrix), scaled(time.memory, factors.memory),
          scaled(time.launch, factors.launch)};
}

}  // namespace lockstep
