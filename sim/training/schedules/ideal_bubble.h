#pragma once

// What a pipeline idles if its stages are alike and messages cost nothing.
//
// Problem:   someone who chooses a number of micro-batches wants to know the bubble before anything is
//            simulated, of any schedule.
// Idea:      a free pipeline in which forward, and either half of backward, take a turn.
// Invariant: for GPipe and 1F1B the published (p - 1) / (m + p - 1), interleaved (p - 1) / (v m + p - 1).
// Cost:      linear in the passes of all stages.

#include <cstdint>
#include <string_view>

#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {

// In turns, of the stage with the longest span from its first pass to the end of its last.
struct IdealBubble {
  std::int64_t idle = 0;
  std::int64_t span = 0;
};

// Of a shape without problems.
IdealBubble ideal_bubble(std::string_view schedule, const PipelineShape& shape);

}  // namespace lockstep
