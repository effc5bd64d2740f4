#pragma once

// How fast computing is, from one measured point.
//
// Problem:   often the only thing measured is the iteration time of a small cluster, not of one GPU.
// Idea:      find what to multiply all computing but launches by so that the scenario, changed as the anchor says,
//            takes as long as was measured. Iteration time grows with it, so a bracket is halved until it is one
//            part per million wide.
// Invariant: deterministic; throws ImpossibleStep where nothing gives the time (communication alone takes longer).
// Cost:      about forty simulations of the anchor's own scenario.

#include "sim/scenario/scenario.h"

namespace lockstep {

// The scenario with its speed solved, or as it is where it has no anchor.
LoadedScenario solve_anchor(LoadedScenario scenario);

}  // namespace lockstep
