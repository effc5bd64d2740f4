#pragma once

// What one GPU must hold during a step, by category.
//
// Problem:   a layout that is fast on paper is worthless when it does not fit.
// Idea:      what stands all the time (weights, gradients, optimizer states, buckets and the library's
//            buffers, the framework's own share) is added up here; what comes and goes during a step is
//            written by the strategy as it goes (memory_change) and added where it peaks.
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
  Bytes framework;

  Bytes& of(MemoryCategory category);
  Bytes total() const {
    return parameters + gradients + optimizer_states + activations + communication_buffers + framework;
  }
};

// `half_copies`: the bytes of low-precision weights that AMP casts and keeps beside its fp32 ones.
struct MemoryInput {
  const Job& job;
  const Communicator& world;
  std::span<const GroupSet> groups = {};  // where collectives run in these instead
  Bytes half_copies;
};
MemoryUse standing_memory(const MemoryInput& input);

// All that the optimizer keeps of a whole model.
Bytes state_bytes(const Job& job);
// fp32 states that the optimizer keeps for each parameter: momentum one, Adam and LAMB two.
std::int64_t states_per_parameter(Optimizer optimizer);
// As the job's strategy says.
MemoryShares memory_shares(const Job& job, std::int64_t ranks);

}  // namespace lockstep
