#pragma once

// Quantities as floating point.
//
// Limits:    for bounds that accept or refuse; nothing of it is simulated.

#include <cstddef>
#include <cstdint>

#include "sim/base/units.h"

namespace lockstep {

inline double as_double(std::int64_t count) {
  return static_cast<double>(count);
}
inline double as_count(std::size_t size) {
  return static_cast<double>(size);
}
inline double as_seconds(Duration duration) {
  return duration.in_seconds();
}
inline double as_ratio(Ratio ratio) {
  return ratio.in_real();
}

}  // namespace lockstep
