#pragma once

// One iteration of a pipeline: stages that each hold a part of the layers and hand micro-batches on.
//
// Problem:   what a stage runs next depends on its schedule alone; when it can, on its neighbours, whose passes
//            in turn depend on its own.
// Idea:      each stage has its order of passes (pipeline_schedule.h). Passes are written as soon as what they
//            need is: a forward after the forward of the part before it, a backward after the backward of the
//            part behind, so that ops name only ops that are there. A pass waits on its compute lane for the
//            message with its input; what a stage sends goes on a lane of its own, beside its computing. Each
//            stage has a synchroniser, which hears of its own layers.
// Invariant: a stage's compute lane runs its passes in the order of its schedule; one with nothing to run waits
//            in "wait for ...", which is the bubble but where its message is under way.
// Cost:      an op a layer and pass, five a message.
// Reference: Huang et al. 1811.06965, Narayanan et al. 2104.04473.

#include <span>
#include <string>
#include <vector>

#include "sim/plan/cohort.h"
#include "sim/training/schedules/pipeline_schedule.h"
#include "sim/training/synchroniser.h"

namespace lockstep {

struct PipelineStage {
  const StrategyContext* context = nullptr;
  Synchroniser* synchroniser = nullptr;
  const Cohort* cohort = nullptr;
  std::vector<LaneId> forward_sends = {};   // by representative of the stage: to the part behind
  std::vector<LaneId> backward_sends = {};  // to the part before
};

// Messages between stages, by representative of the whole plan.
struct PipelineLinks {
  std::vector<WrittenGroup>
      lines;  // ranks that hold one copy of the model, stage by stage; roles as in the plan
  std::vector<Communication>* communications = nullptr;  // filled
};

void write_pipeline(const PipelineSchedule& schedule, PlanWriter& writer,
                    std::span<const PipelineStage> stages, const PipelineLinks& links);

}  // namespace lockstep
