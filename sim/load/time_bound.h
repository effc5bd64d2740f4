#pragma once

// What an iteration of a scenario takes at most.
//
// Problem:   a scenario whose run overflows the clock must be refused before anything of it is built, and one that
//            does not must not be.
// Idea:      the model is cut as its layout says, and every layer of a rank is charged the worst that its kernels,
//            the exchanges beside them and its strategy's messages may come to, nothing beside anything else. Of a
//            pipeline no way through its passes has more than m + 2 p of one kind for each chunk of a stage.
// Invariant: no simulated iteration takes longer.
// Cost:      a walk over the layers of one rank.

#include "sim/scenario/scenario.h"

namespace lockstep {

// In seconds; of a scenario that can be described.
double longest_iteration(const Scenario& scenario);

}  // namespace lockstep
