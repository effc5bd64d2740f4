#pragma once

// Attention of a sequence whose tokens are spread over ranks.
//
// Problem:   every query meets the keys of all ranks; who holds the first tokens of a causal sequence would
//            have nothing to do, who holds the last would have twice the mean.
// Idea:      each rank holds a piece of the first and the mirrored piece of the second half, so that all do
//            the same. ring: one layer for each block of keys and values that comes by, the next block sent
//            on beside it. all_gather: keys and values of all, gathered before and again before backward;
//            their gradients scattered. rotate_...: torch_ring.h. ulysses: all tokens of a part of the heads,
//            by an all-to-all before and one after.
// Invariant: the steps' FLOPs add up to one rank's equal share of the whole square.
// Cost:      a ring of c ranks sends c - 1 times the keys and values of a rank forward, and backward these
//            and their gradients c - 1 times each.
// Reference: Liu et al. 2310.01889; Brandon et al. 2311.09431 (balanced halves); Grattafiori et al.
//            2407.21783 section 3.3.2; Jacobs et al. 2309.14509; Transformer Engine pytorch/attention
//            (AttnFuncWithCPAndKVP2P, -KVAllGather, -QKVOA2A).

#include <vector>

#include "sim/training/parallel_model.h"
#include "sim/training/sliced_layer.h"

namespace lockstep {

// `attention` counts what one rank does; its shape still has the whole sequence.
std::vector<SlicedLayer> context_steps(const Layer& attention, const ParallelDegrees& degrees);

}  // namespace lockstep
