#pragma once

// How much an iteration would gain if one thing about the cluster were better.
//
// Problem:   "limited by the network" is an opinion until somebody doubles the network.
// Idea:      simulate again with one figure of the scenario changed and compare.
// Cost:      one simulation a change.

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace lockstep {

struct Sensitivity {
  std::string change;  // "NIC bandwidth x 2"
  Duration iteration;
};

// Only changes that touch something the scenario has: one node has no network between nodes.
std::vector<Sensitivity> find_sensitivities(const Scenario& scenario);

// Kernels that products then bound differ more from GPU to GPU: where next to nothing waits for memory, ranks may
// meet a little later.
Sensitivity find_memory_sensitivity(const Scenario& scenario);

}  // namespace lockstep
