#pragma once

// One iteration of a pipeline: stages that each hold a part of the layers and hand micro-batches on.
//
// Problem:   what a stage runs next depends on its schedule alone; when it can, on its neighbours, whose passes
//            in turn depend on its own.
// Idea:      each stage has its order of passes (pipeline_schedule.h). Passes are written (stage_passes.h) as soon
//            as what they need is: a forward after the forward of the part before it, a backward after the
//            backward of the part behind, so that ops name only ops that are there. A pass waits on its compute
//            lane for the message with its input; what a stage sends (stage_messages.h) goes on a lane of its
//            own, beside its computing.
// Invariant: a stage's compute lane runs its passes in the order of its schedule; one with nothing to run waits
//            in "wait for ...", which is the bubble but where its message is under way.
// Cost:      an op a layer and pass, five a message.
// Reference: Huang et al. 1811.06965, Narayanan et al. 2104.04473.

#include <span>

#include "sim/training/schedules/pipeline_schedule.h"
#include "sim/training/schedules/stage_messages.h"
#include "sim/training/schedules/stage_passes.h"

namespace lockstep {

void write_pipeline(const PipelineSchedule& schedule, PlanWriter& writer,
                    std::span<const PipelineStage> stages, const PipelineLinks& links);

}  // namespace lockstep
