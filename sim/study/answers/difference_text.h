#pragma once

// A time beside another: how much more or less, with its sign.
//
// Idea:      what-if and compare tell differences in the same words.
// Invariant: "-" where two times are one, to the picosecond.

#include <string>

#include "sim/base/quantity_text.h"
#include "sim/base/units.h"

namespace lockstep {

inline double difference_percent(Duration before, Duration after) {
  return 100 * (after.in_seconds() / before.in_seconds() - 1);
}

// "+2.5 ms"; "-" where there is none.
inline std::string signed_duration(Duration duration) {
  if (duration == Duration::zero())
    return "-";
  const bool is_negative = duration < Duration::zero();
  return (is_negative ? "-" : "+") + format_duration(is_negative ? duration * -1 : duration);
}

}  // namespace lockstep
