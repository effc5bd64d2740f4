#pragma once

// Where the traffics of one cluster run, by their names.
//
// Idea:      links and loads depend on a cluster and a traffic, not on a plan or its bytes (traffic_route.h).
// Invariant: of one topology and one symmetry.

#include "sim/base/remembered.h"
#include "sim/network/traffic_route.h"

namespace lockstep {

class RouteLibrary : public Remembered<TrafficRoute> {
 public:
  using Remembered::Remembered;
};

}  // namespace lockstep
