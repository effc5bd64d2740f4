#pragma once

// A layer as one rank of a tensor-, context- and expert-parallel group runs it.
//
// Problem:   who cuts a layer knows what has to be exchanged around it, and one layer may become several.
// Idea:      both in one value, made by whoever knows that kind of layer (tensor_exchanges, context_slice,
//            expert_slice) and put into a row by the walk over the model (parallel_model).
// Invariant: nothing is exchanged along an axis of one rank.

#include <utility>
#include <vector>

#include "sim/training/parallel_model.h"

namespace lockstep {

struct SlicedLayer {
  Layer layer;
  LayerExchanges exchanges = {};
};

inline void add_exchange(std::vector<Exchange>& list, const ParallelDegrees& degrees, Exchange exchange) {
  if (degree_of(degrees, exchange.axis) > 1)
    list.push_back(std::move(exchange));
}

}  // namespace lockstep
