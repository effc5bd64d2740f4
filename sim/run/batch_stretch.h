#pragma once

// The work of batches that are shorter than the model's sequence_length.
//
// Idea:      once kernels are priced for the whole length, those of forward and backward are shortened to the
//            length that their rank's batch was padded to, drawn by seed, rank and batch alone. Where
//            samples are grouped by length every rank has the same slice, so the rank is left out of the
//            draw.
// Invariant: a batch as long as sequence_length changes nothing.

#include <vector>

#include "sim/plan/plan.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// `begins`: the first op of each micro-batch, ascending.
void stretch_by_length(Plan& plan, const std::vector<OpId>& begins, const Scenario& scenario);

}  // namespace lockstep
