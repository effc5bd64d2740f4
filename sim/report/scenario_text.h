#pragma once

// A resolved scenario as two columns: every value, and where it comes from.
//
// Problem:   a prediction is only as good as its inputs, and most of them the user never wrote.
// Idea:      the resolved scenario as an indented tree; the right column says the origin where it changes,
//            what stands below inherits it. Long tables of points show their ends; --json has them whole.
// Invariant: no value of the scenario is left out but the middles of such tables, and a profile's source
//            where its origin already says it.

#include <string>

#include "sim/scenario/scenario.h"

namespace lockstep {

std::string listing_of(const LoadedScenario& scenario);

}  // namespace lockstep
