#pragma once

// A host that hands the parts of a tensor to a collective one by one.
//
// Problem:   a gather into one tensor is one call; a gather into a list of the ranks' parts is a view and a copy for
//            each of them: with 1,000 ranks a thousand operators, tensor after tensor.
// Idea:      a lane of the host beside each compute lane. Before a gather it waits until its GPU has done everything
//            (torch.cuda.synchronize), makes the list, and only then does the GPU go on; before a reduction it makes
//            the list while the GPU computes.
// Invariant: a list takes the host an operator for each rank and tensor, whatever the parts hold; it makes one list
//            at a time. Where that takes no time (Job::part_listing) nothing is written.
// Cost:      two ops a representative for each list.
// Not told:  the copies themselves, which are shorter than it takes to issue them.
// Reference: deepspeed/runtime/zero/partition_parameters.py before 0.6 (_allgather_param, _reduce_scatter_gradient);
//            PyTorch, ProcessGroupNCCL.cpp (flatten_for_scatter_gather, and a copy for each part).

#include <cstdint>
#include <vector>

#include "sim/training/step_writer.h"

namespace lockstep {

// Holds the compute lanes until the lists of so many tensors are made.
void list_for_gather(const StrategyContext& context, std::int64_t tensors);

// When the lists are made, by representative; empty: nothing is listed.
std::vector<OpId> list_for_reduction(const StrategyContext& context, std::int64_t tensors);

}  // namespace lockstep
