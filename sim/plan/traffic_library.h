#pragma once

// Traffics that were made for one cluster, by name.
//
// Problem:   every plan of a cluster asks for the same few traffics, and a tree over a thousand ranks is dear.
// Idea:      the name that a writer asks for says all that a traffic depends on beside the cluster, so plans of
//            one cluster may share what was made.
// Cost:      a look-up and a copy for each traffic of a plan.

#include "sim/base/remembered.h"
#include "sim/plan/plan.h"

namespace lockstep {

class TrafficLibrary : public Remembered<Traffic> {
 public:
  using Remembered::Remembered;
};

}  // namespace lockstep
