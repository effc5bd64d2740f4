#pragma once

// The answer of a sweep for people, and as one JSON document.
//
// Problem:   a table of thousands of rows is no answer.
// Idea:      the first rows with their distance from the best as a bar, then what is best at which choice, the
//            Pareto front where several things are wanted, and the shape of a single axis.
// Invariant: what does not fit in memory or fails a condition says so in its row and is never the best.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/study/answers/sweep_ranking.h"

namespace lockstep {

std::string to_text(const SweepTable& table, const SweepRanking& ranking);
nlohmann::ordered_json to_json(const SweepTable& table, const SweepRanking& ranking);

}  // namespace lockstep
