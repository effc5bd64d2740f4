#pragma once

// What a search asks of each of its candidates: how long, where the time goes, how much memory.
//
// Problem:   a report knows the critical path, the overlap and the band; a search asks for none of that, a
//            thousand times.
// Idea:      the parts of a report that candidates are compared by, read the same way.
// Invariant: each figure is the one that summarise tells of the same simulation.
// Cost:      one pass over the ops of a run.

#include "sim/report/breakdown.h"
#include "sim/report/throughput.h"
#include "sim/run/simulate.h"

namespace lockstep {

struct Brief {
  Duration iteration;
  Breakdown breakdown;
  Throughput throughput;
  Bytes memory;  // of the GPU that holds most
};

Brief summarise_briefly(const Scenario& scenario, const Simulation& simulation);

}  // namespace lockstep
