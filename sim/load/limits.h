#pragma once

// Scenarios that are larger than integers.
//
// Problem:   integers of 64 bits hold 106 days of picoseconds; a scenario that breaks them would fail long
//            after it was accepted, and one that does not must not be refused. What memory and patience hold is
//            another matter (run_size.h), and so is what does not go together (compatibility.h).
// Idea:      crude estimates from the scenario alone, before anything is built: of its work at most, of its time
//            at best. Floating point will do: they only accept or refuse, nothing simulated comes from them.
//            Quantities are checked wherever they are added (units.h): what passes and still outgrows its
//            integer is refused when it does.
// Invariant: what passes has every share of a link at 1 B/s or more, and every sum of work within 64 bits; what
//            is refused for its time would take days of it.

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace lockstep {

// Each line opens with the JSON pointer of what to change.
std::vector<std::string> find_size_problems(const Scenario& scenario);
// Of a scenario without those, whose computing is known.
std::vector<std::string> find_time_problems(const Scenario& scenario);

}  // namespace lockstep
