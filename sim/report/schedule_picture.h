#pragma once

// The last iteration of a pipeline as it ran, stage by stage: what plots/schedule.py draws.
//
// Problem:   a trace shows every kernel; a schedule is understood from its passes, one box for a
//            micro-batch's forward or backward through a stage, and from the time between them.
// Idea:      the spans of run_spans.h, put together again: a pass ends where its stage's layers are
//            through. Micro-batches are counted, since a chunk takes them in order.
// Invariant: boxes of a stage do not overlap, and every time is one of the run's.
// Cost:      linear in the ops of the iteration.

#include <nlohmann/json.hpp>

#include "sim/run/simulate.h"

namespace lockstep {

// `simulation` is of a scenario with a pipeline.
nlohmann::ordered_json schedule_picture(const Scenario& scenario, const Simulation& simulation);

}  // namespace lockstep
