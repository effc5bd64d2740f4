#pragma once

// The lanes of one rank in the last iteration, as a page draws them.
//
// Problem:   a rank's streams, engines, loader workers and wires are many lanes, made by whoever needed them.
// Idea:      computing first, then each communication lane, its host, copies, loaders and storage, and below them the
//            busiest link of each kind. Lanes of one kind and number are one: some are made anew each iteration.
//            Loaders work ahead: what they do for iterations that the run no longer has is drawn where they did it
//            for the last one, an iteration later and by the worker whose turn it then is.
// Invariant: spans are those of the trace (run_spans.h) and of link_use.h; lanes without any are left out.
// Cost:      linear in the ops of the run.

#include <string>
#include <vector>

#include "sim/report/run_spans.h"
#include "sim/run/simulate.h"

namespace lockstep {

struct DrawnLane {
  std::string name;
  std::vector<Span> spans;
  bool tells_busy = false;  // spans have a height
};

std::vector<DrawnLane> timeline_lanes(const Simulation& simulation, std::size_t representative);

}  // namespace lockstep
