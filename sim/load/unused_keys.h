#pragma once

// Keys that a file states and that change nothing of its scenario.
//
// Problem:   a schedule without a pipeline, a dispatcher without experts, a time-out where nobody waits: each is valid
//            by itself, and who states it believes that it is at work.
// Idea:      what each key works on is one line of a table; what a strategy has no use for it says itself
//            (Strategy::unused).
// Invariant: what is told to change nothing changes nothing (a law). The usual value is nobody's belief: a file with
//            every default written out is told nothing.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/load/training/compute_presets.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// A line each, "training.placement changes nothing: ...". `given`: the file, with what --set changed of it; `facts`: by
// which compute.preset chooses.
std::vector<std::string> find_unused_keys(const Scenario& scenario, const nlohmann::ordered_json& given,
                                          const ComputeFacts& facts);

}  // namespace lockstep
