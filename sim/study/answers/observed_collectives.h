#pragma once

// Collectives that a trace shows beside the same ones predicted.
//
// Problem:   a trace of a run and a prediction of it agree on an iteration for the wrong reasons if their collectives do
//            not.
// Idea:      the run is predicted; what it exchanges is matched by kind and size with what the trace shows.
// Invariant: what has no match is said to have none: buckets that differ are the first thing to look at.
// Cost:      one prediction.

#include <string>
#include <vector>

#include "sim/load/import/importer.h"
#include "sim/load/load.h"

namespace lockstep {

struct ObservedBesidePredicted {
  ObservedCollective observed;
  std::int64_t predicted_calls = 0;  // in an iteration; 0: none of this kind and size
  Duration predicted;                // the median of their times
};

std::vector<ObservedBesidePredicted> compare_collectives(const LoadedScenario& run,
                                                         const std::vector<ObservedCollective>& observed);

// In lines.
std::string describe_collectives(const std::vector<ObservedBesidePredicted>& rows);

}  // namespace lockstep
