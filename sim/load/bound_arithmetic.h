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
inline double as_ratio(std::int64_t parts_per_million) {
  return as_double(parts_per_million) / as_double(million);
}

}  // namespace lockstep
