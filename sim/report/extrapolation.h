#pragma once

// Where a prediction leaves what its constants were fitted to, in the words of a warning.
//
// Invariant: nothing is said of a calibration without a fitted range, nor of a rank alone.

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace lockstep {

void warn_beyond_fitted_scale(const ClusterSpec& cluster, std::vector<std::string>& warnings);
void warn_beyond_fitted_sizes(const ClusterSpec& cluster, Bytes smallest, Bytes largest,
                              std::vector<std::string>& warnings);

}  // namespace lockstep
