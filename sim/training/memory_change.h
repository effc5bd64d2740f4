#pragma once

// What is held only for a while: activations, gathered weights, messages on their way.
//
// Problem:   the most that a GPU holds at once is less than the sum of all that it ever holds.
// Idea:      a strategy says at which op so many bytes more or fewer are held; when that was is known after
//            the run (report/memory_track).
// Invariant: what an iteration allocates it releases. Changes at one instant happen in the order they were
//            written, which is the order in which the host asks its allocator.
// Cost:      a change a layer and pass, in one iteration of a run; none in the others.

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/plan/plan.h"

namespace lockstep {

enum class MemoryCategory : std::uint8_t {
  parameters,
  gradients,
  optimizer_states,
  activations,
  communication_buffers,
  workspaces,
  framework
};

enum class OpEdge : std::uint8_t { start, end };

struct MemoryChange {
  MemoryCategory category = MemoryCategory::activations;
  Bytes bytes;  // below zero: released
  OpEdge edge = OpEdge::start;
  std::vector<OpId> at;  // by representative; no_op: nothing changes there
};

}  // namespace lockstep
