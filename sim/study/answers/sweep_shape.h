#pragma once

// What a sweep of one axis comes to: where it is flat, what its best is, what leaving that costs.
//
// Problem:   a best of 25 MB says nothing about whether 50 MB would have done, nor whether the prediction can tell.
// Idea:      values in their order; the run of neighbours around the best that cost at most one percent more is
//            flat. Where the ends of the axis, the neighbours of the flat run and the dearest value cost more,
//            they are told. Values whose bands overlap the best's are told apart: their order may be another.
// Invariant: only values that will do count, and one that will not ends the run. Names have no order, so no runs.
// Cost:      a pass over the rows.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/answers/sweep_ranking.h"

namespace lockstep {

struct ShapeCost {
  nlohmann::ordered_json value;
  double part = 0;  // of the best: 0.31 is 31 % more
};

struct SweepShape {
  std::string path;
  nlohmann::ordered_json best;
  std::vector<nlohmann::ordered_json> flat = {};  // the best and its neighbours
  std::vector<nlohmann::ordered_json> also_flat = {};
  std::vector<ShapeCost> costs = {};
  std::vector<nlohmann::ordered_json> in_band = {};  // without the best
  bool has_order = true;
  bool is_flat_throughout = false;
};

// Of a sweep of one axis that minimises something above zero; else nothing.
std::optional<SweepShape> find_shape(const SweepTable& table, const SweepRanking& ranking);

// "flat from 10 to 50 (within 1 %); best 25; 1 costs 31 %", and a line about bands; each ends in a newline.
std::string to_text(const SweepShape& shape);
nlohmann::ordered_json to_json(const SweepShape& shape);

}  // namespace lockstep
