#pragma once

// What a harness run measured over bucket_cap_mb, beside a sweep of it.
//
// Problem:   a predicted curve says which cap is best, but not whether that would have been a good choice.
// Idea:      the run's plain iterations by cap. Cells of the same cap are held against them; the predicted best is
//            judged by what it takes as measured.
// Invariant: only caps that are both predicted and measured are compared. Nothing of the run reaches a prediction.
// Cost:      caps times cells.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/study/answers/sweep_table.h"

namespace lockstep {

inline constexpr const char* measured_axis = "training.bucket_cap_mb";

struct MeasuredCap {
  double bucket_cap_mb = 0;
  double median_s = 0;
  double p10_s = 0;
  double p90_s = 0;
};

struct MeasuredCurve {
  std::string run;
  std::vector<MeasuredCap> caps;  // ascending
};

// Under "measured" of lockstep.sweep/1.
nlohmann::ordered_json measured_json(const SweepTable& table, const MeasuredCurve& curve);
// That in words, a line each.
std::string measured_text(const nlohmann::ordered_json& measured);

}  // namespace lockstep
