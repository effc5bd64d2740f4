#pragma once

// Scenarios that are larger than integers.
//
// Problem:   integers of 64 bits hold 53 days of picoseconds; a scenario that breaks them would fail long
//            after it was accepted. What memory and patience hold is another
//            matter (run_size.h), and so is what does not go together (compatibility.h).
// Idea:      crude upper bounds from the scenario alone, before anything is built. Floating point will do:
//            the bounds only accept or refuse, nothing simulated comes from them.
// Invariant: what passes keeps every duration under 2^62 ps, every share of a link at 1 B/s or more, and
//            every sum of work within 64 bits.

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace lockstep {

// Each line opens with the JSON pointer of what to change.
std::vector<std::string> find_size_problems(const Scenario& scenario);
// Of a scenario without those, whose computing is known.
std::vector<std::string> find_time_problems(const Scenario& scenario);

}  // namespace lockstep
