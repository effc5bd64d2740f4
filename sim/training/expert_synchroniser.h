#pragma once

// Dense parameters and experts, each synchronised among the ranks that hold them.
//
// Problem:   experts are dealt among ranks that all hold the same dense layers, so that the gradients of one layer
//            are reduced over fewer ranks than those of the next.
// Idea:      the strategy twice: a synchroniser for the dense parameters over all copies, another for the experts
//            over the ranks with the same ones, each with a job that knows its own gradients alone. Passes are
//            told to both.
// Invariant: every gradient is told to one of the two.
// Reference: NVIDIA/Megatron-LM megatron/core/distributed/distributed_data_parallel.py (expert_parallel_buffers).

#include <memory>

#include "sim/training/synchroniser.h"

namespace lockstep {

// The strategy's own, or that pair where the job's parameters are of two kinds. `context` outlives it.
std::unique_ptr<Synchroniser> synchroniser_of(const Strategy& strategy, const StrategyContext& context);

}  // namespace lockstep
