#pragma once

// What collectives and messages of a scenario take at most.
//
// Problem:   the time of a scenario must be bounded before its cluster is built.
// Idea:      every step of the costliest protocol over everything that a hop may cross, and every byte by the
//            slowest link, shared with all that a node may send at once.
// Invariant: nothing that is simulated of the scenario's messages takes longer.

#include "sim/scenario/scenario.h"

namespace lockstep {

struct Messages {
  double collectives = 0;
  double between_pairs = 0;
  double bytes = 0;  // over one GPU's links
  double ranks = 1;  // of the largest group
};

double seconds_of(const Scenario& scenario, const Messages& messages);

// The least that a flow gets of the slowest link, in bytes/s.
double smallest_share(const Scenario& scenario);

}  // namespace lockstep
