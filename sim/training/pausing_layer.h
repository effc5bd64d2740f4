#pragma once

// The passes of a layer, paused wherever the compute lane would wait for an exchange, or for one of experts (pausing.h).
//
// Invariant: the ops and their order are those of step_writer's write_forward_of, write_backward and write_backward_input.

#include <vector>

#include "sim/training/pausing.h"
#include "sim/training/strategy.h"

namespace lockstep {

// `done`: what the next layer, or a neighbour, waits for. All must outlive it.
Pausing pausing_forward(const StrategyContext& context, PausesAt at, const LayerWork& layer,
                        std::vector<OpId>& done);
Pausing pausing_backward(const StrategyContext& context, PausesAt at, const LayerWork& layer,
                         std::vector<OpId>& done);
Pausing pausing_backward_input(const StrategyContext& context, PausesAt at, const LayerWork& layer,
                               std::vector<OpId>& done);

}  // namespace lockstep
