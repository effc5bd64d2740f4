#include "sim/training/traffic_bound.h"

#include <algorithm>

namespace lockstep {

double most_groups(const TrafficInput& input, double elements) {
  return std::min(input.tensors, input.elements / elements + 2);
}

double most_units(const TrafficInput& input) {
  return input.layers + 1;
}

}  // namespace lockstep
