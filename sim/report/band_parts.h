#pragma once

// What a band is made of.
//
// Invariant: ranges of the iteration, before the factor.

#include <cstdint>
#include <vector>

#include "sim/report/error_sources.h"

namespace lockstep {

struct BandParts {
  StepConditions conditions;
  std::vector<ErrorSource> sources;  // of computing, as ranges of computing
  LogRange computing;                // what they come to
  LogRange computing_of_iteration;
  LogRange host;  // of what its host takes to issue kernels
  LogRange host_of_iteration;
  LogRange communication_of_iteration;
  LogRange again;  // of any iteration that is measured again, elsewhere
  Ratio factor = Ratio::one();
};

LogRange whole_band(const BandParts& parts);

}  // namespace lockstep
