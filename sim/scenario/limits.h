#pragma once

// Scenarios that are well formed but impossible: too large to simulate, or asking for what is not there.
//
// Problem:   integers of 64 bits hold 53 days of picoseconds, and a plan must fit in memory; a scenario that
//            breaks either would fail long after it was accepted.
// Idea:      crude upper bounds from the scenario alone, before anything is built. Floating point will do:
//            the bounds only accept or refuse, nothing simulated comes from them.
// Invariant: what passes keeps every duration under 2^62 ps, every share of a link at 1 B/s or more, and
//            every sum of work within 64 bits.

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace lockstep {

// Each line opens with the JSON pointer of what to change.
std::vector<std::string> find_limit_problems(const Scenario& scenario);

// What is simulated one by one, as folding left it.
struct SimulatedSize {
  double ranks = 1;
  double rings = 1;
};

// Throws ConfigError when simulating this much needs more than 2 GB, and says what makes it smaller.
void check_memory(const Scenario& scenario, const SimulatedSize& size);

}  // namespace lockstep
