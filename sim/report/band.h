#pragma once

// Between which times a measured iteration is to be expected.
//
// Idea:      the residuals of the calibration say how far its figures miss. The scenario is simulated again with
//            every communication figure, and computing where nothing anchors it, at the low and at the high end.
// Invariant: where nothing is known of residuals there is no band, and a warning says so.
// Cost:      two more simulations; a long run's are short, and the band is as wide in proportion.

#include "sim/report/report.h"

namespace lockstep {

// Gives the report its low and high times, or a warning.
void add_band(Report& report, const Scenario& scenario);

}  // namespace lockstep
