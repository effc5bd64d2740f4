#pragma once

// A sweep beside what was measured of its cells.
//
// Problem:   a predicted curve says which cell is best, but not whether that would have been a good choice.
// Idea:      predictions are held against what was measured of the same cell; the predicted best is judged by what it
//            takes as measured.
// Invariant: only cells that are both predicted and measured are compared.
// Cost:      a pass over the rows.

#include <nlohmann/json.hpp>
#include <string>

#include "sim/study/answers/sweep_table.h"

namespace lockstep {

// Under "measured" of lockstep.sweep/1. The table has something measured.
nlohmann::ordered_json measured_json(const SweepTable& table);
// That in words, a line each.
std::string measured_text(const nlohmann::ordered_json& measured);
// Of one of its points: "25", with several axes "training.bucket_cap_mb=25  cluster.nodes=2".
std::string measured_setting(const nlohmann::ordered_json& point);

}  // namespace lockstep
