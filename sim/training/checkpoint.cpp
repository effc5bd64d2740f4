#include "sim/training/checkpoint.h"

#include "sim/training/memory.h"

namespace lockstep {
namespace {

// Of `whole` in as many parts: one rank's, rounded up. What only one rank holds (0 parts) it writes whole.
Bytes written_part(Bytes whole, std::int64_t parts) {
  return parts == 0 ? whole : divided_up(whole, parts);
}

}  // namespace

CheckpointBytes checkpoint_bytes(const Job& job, std::int64_t ranks) {
  const MemoryShares shares = memory_shares(job, ranks);
  const Bytes weights = gradient_bytes(job);  // a weight has its gradient's type
  const Bytes states = state_bytes(job);
  return {.total = weights + buffer_bytes(job) + states,
          .of_busiest = written_part(weights, shares.weights) + buffer_bytes(job) +
                        written_part(states, shares.states)};
}

}  // namespace lockstep
