#pragma once

// What one GPU must hold during a step, by category.
//
// Problem:   a layout that is fast on paper is worthless when it does not fit.
// Idea:      what stands all the time (weights, gradients, optimizer states, buckets and the library's
//            buffers, workspaces, the context) is added up here; what comes and goes during a step is
//            written by the strategy as it goes (memory_change) and added where it peaks. What the framework's
//            allocator loses is an allowance, a share of what it has handed out.
// Invariant: the parts add up to the total; what tools of the framework call allocated and reserved is told apart.
// Reference: Rajbhandari et al. 1910.02054 (states), stas00/ml-engineering (CUDA context), NVIDIA/nccl issue
// 964 (buffers).

#include <cstdint>
#include <span>

#include "sim/base/units.h"
#include "sim/plan/group.h"
#include "sim/training/memory_change.h"
#include "sim/training/strategy.h"

namespace lockstep {

struct MemoryUse {
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer_states;
  Bytes activations;
  Bytes communication_buffers;
  Bytes workspaces;
  Bytes framework;  // the driver's context
  Bytes allocator;  // an allowance for rounding and fragments

  Bytes library;                        // of the communication buffers, what the library asks the driver for
  std::int64_t allocated_per_lost = 0;  // bytes for each that the allowance gives; 0: nothing is lost

  Bytes& of(MemoryCategory category);
  // torch.cuda.max_memory_allocated: the step's tensors.
  Bytes allocated() const {
    return parameters + gradients + optimizer_states + activations + (communication_buffers - library) +
           workspaces;
  }
  // torch.cuda.max_memory_reserved: and what the allocator loses.
  Bytes reserved() const { return allocated() + allocator; }
  // nvidia-smi: and what never was the allocator's.
  Bytes total() const { return reserved() + library + framework; }
};

// With the allowance for what is held now.
MemoryUse with_allowance(MemoryUse use);

// `half_copies`: the bytes of low-precision weights that AMP casts and keeps beside its fp32 ones.
struct MemoryInput {
  const Job& job;
  const Communicator& world;
  std::span<const GroupSet> groups = {};  // where collectives run in these instead
  std::int64_t ranks = 0;                 // that divide between them what the strategy divides; 0: all
  Bytes half_copies;
};
MemoryUse standing_memory(const MemoryInput& input);

// All that the optimizer keeps of a whole model.
Bytes state_bytes(const Job& job);
// fp32 states that the optimizer keeps for each parameter: momentum one, Adam and LAMB two.
std::int64_t states_per_parameter(Optimizer optimizer);
// As the job's strategy says.
MemoryShares memory_shares(const Job& job, std::int64_t ranks);
// Into how many parts `ranks` divide what updates the weights, as they divide the optimizer's states.
std::int64_t update_parts(const Job& job, std::int64_t ranks);

}  // namespace lockstep
