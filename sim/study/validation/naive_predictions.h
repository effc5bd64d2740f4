#pragma once

// What predictors without any mechanism would say, from the very measurement that ours starts from.
//
// Problem:   skill is what a simulator adds to an anchor and a division; so the division must know the anchor.
// Idea:      C is the time of the compute alone, X that of all communication when nothing overlaps:
//            no communication C, no overlap C + X, perfect overlap max(C, X). On one GPU C is the step itself.
//            Where `compute.anchor` states an iteration T of another cluster, whose step has w times less
//            work, each predictor reads it in its own way: as compute alone (C = T w), as compute and then X'
//            (C = (T - X') w), as whichever is longer (C = T w, since the other way round says nothing of C).
// Invariant: no event of an overlapped step enters.
// Cost:      one simulation, two with an anchor.

#include "sim/scenario/scenario.h"
#include "sim/study/validation_case.h"

namespace lockstep {

// `scenario` has `communication.overlap` set to false.
NaivePredictions naive_predictions(const Scenario& scenario);

}  // namespace lockstep
