#pragma once

// cluster.faults: how often nodes fail, and what the run does about it.
//
// Idea:      {"mtbf_per_node": "1 year", "restart": "5 min", "checkpoint_interval": "1 h",
//            "checkpoint_bandwidth": "10 GB/s", "horizon": "30 days"}; an interval of "optimal", or left
//            out, is Daly's, and a horizon left out is 30 days. The others depend on the site: nobody
//            guesses them.
// Invariant: a horizon holds at most a million expected failures, so that every one of them can be drawn.

#include "sim/load/reading/load_context.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

FaultSpec read_faults(const JsonReader& json, const Place& place, std::int64_t nodes);

}  // namespace lockstep
