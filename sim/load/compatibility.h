#pragma once

// Scenarios whose parts are well formed, each by itself, and do not go together.
//
// Problem:   a precision that the GPU does not multiply in, an algorithm that the cluster lacks the switches
//            for, a strategy that has no use for an input: each part was accepted before the other was known.
// Idea:      one function a pair of parts, asked once all are read. What a strategy does not go with it says
//            itself (strategy.h).

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace lockstep {

// Each line opens with the JSON pointer of what to change.
std::vector<std::string> find_conflicts(const Scenario& scenario);

}  // namespace lockstep
