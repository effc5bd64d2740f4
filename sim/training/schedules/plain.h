#pragma once

// The schedule of plain data parallelism: every rank runs all layers.
//
// Idea:      micro-batch after micro-batch, forward through the layers and backward from the last; then the
//            update. Gradients are reduced in the last micro-batch, or in each where the synchroniser says so.
// Invariant: each micro-batch begins with its batch; at most one is under way.

#include "sim/training/synchroniser.h"

namespace lockstep {

void write_plain_schedule(const StrategyContext& context, Synchroniser& synchroniser);

}  // namespace lockstep
