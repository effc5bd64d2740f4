#pragma once

// One iteration of a strategy: its synchroniser under a schedule.
//
// A schedule is a function of a context and a synchroniser, one file each; `plain` is the only one, and rank 0's
// own order where it leads the others (Strategy::write_iteration).

#include "sim/training/strategy.h"

namespace lockstep {

void write_scheduled_iteration(const Strategy& strategy, const StrategyContext& context);

}  // namespace lockstep
