#pragma once

// The value in the middle.
//
// Problem:   one disturbed measurement must not move a figure.
// Invariant: of an even number of values, the mean of the two in the middle; of none there is no median.
// Cost:      a sort.

#include <algorithm>
#include <vector>

#include "sim/base/check.h"

namespace lockstep {

inline double median(std::vector<double> values) {
  LOCKSTEP_CHECK(!values.empty(), "a median is of something");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace lockstep
