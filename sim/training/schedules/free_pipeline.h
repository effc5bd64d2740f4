#pragma once

// A pipeline whose messages take no time.
//
// Problem:   what a schedule idles by itself, and what no run of it undercuts, are told before anything is simulated.
// Idea:      every stage's passes in their order, each as early as the rules of pipeline_schedule.h let it.
// Invariant: nothing that runs the same passes for the same times, or longer ones, ends earlier.
// Cost:      linear in the passes of all stages.

#include <vector>

#include "sim/base/units.h"
#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {

// Of one micro-batch in a chunk of a stage.
struct PassTime {
  Duration forward;
  Duration backward_input;
  Duration backward_weights;

  Duration of(PassKind kind) const;
};

// Of a stage: from its first pass to the end of its last, and how much of that it computes.
struct FreeSpan {
  Duration begin;
  Duration end;
  Duration busy;
};

// By stage; `times` by stage and chunk. Of a shape without problems.
std::vector<FreeSpan> run_freely(const PipelineSchedule& schedule, const PipelineShape& shape,
                                 const std::vector<std::vector<PassTime>>& times);

}  // namespace lockstep
