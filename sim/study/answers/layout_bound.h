#pragma once

// What a layout takes at least, known without simulating it.
//
// Problem:   simulating a pipeline of hundreds of micro-batches takes a second, and there are thousands of
//            layouts.
// Idea:      the kernels of each pass at their prices and what it waits for from its tensor, context and
//            expert groups at the bandwidth of a GPU's own wires, in the order of the schedule; messages
//            between stages, gradients, latencies and hosts for nothing. On the first stage nothing can end
//            earlier, nor on a stage that never waits; then comes the optimizer's part of a rank. Memory: what
//            stands, and what forward passes keep.
// Invariant: a simulation takes no less time and holds no less memory. Kernels never run faster than they are
//            priced, lanes run one at a time, and a pass waits for the same passes in both. An iteration
//            counts from end to end on the rank that ends last; what it does follows its first forward
//            on the first stage, which follows the end of the iteration before there, so that no iteration
//            comes sooner after that than the first did after nothing. Zero where kernels may take less
//            than their price: drawn jitter, padded lengths, workers that wait for nobody.
// Limits:    tensor groups lie within nodes, as candidates have them.
// Cost:      describing the job, and a few nanoseconds a pass.
// Reference: the longest path through the passes (Kelley 1961).

#include "sim/base/units.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

struct LayoutBound {
  Duration iteration;
  Bytes memory;
};

LayoutBound bound_layout(const Scenario& scenario);

}  // namespace lockstep
