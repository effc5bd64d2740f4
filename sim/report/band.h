#pragma once

// How far a prediction may be wrong.
//
// Problem:   a calibration says by how much its own measurements missed it; what that makes of an iteration is
//            less where communication hides behind computing, and more where it changes what hides.
// Idea:      the scenario again with every communication figure at the low end of its residual, and at the
//            high end, and computing likewise where its error is known; nothing but the iteration is asked for.
// Invariant: each end is the time that the library as it would then be takes, whatever it would then choose.
// Cost:      the steady iterations twice more; of a long run its first ones, three times.

#include "sim/report/report.h"
#include "sim/run/cluster_store.h"

namespace lockstep {

// Gives the report its low and high times, or warns why there are none. `clusters` may be null.
void add_band(Report& report, const Scenario& scenario, ClusterStore* clusters);

}  // namespace lockstep
