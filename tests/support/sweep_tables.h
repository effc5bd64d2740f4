#pragma once

// Tables of sweeps that were never run.

#include <string>
#include <utility>
#include <vector>

#include "sim/study/answers/sweep_table.h"

namespace lockstep::testing {

using Values = std::vector<nlohmann::ordered_json>;

// `x` was varied through `places`; each row has a value for each key.
inline SweepTable sweep_table_of(Values places, std::vector<std::string> keys,
                                 const std::vector<Values>& results) {
  std::vector<SweepRow> rows;
  for (const Values& values : results) rows.push_back({.cell = rows.size(), .results = values});
  return {.grid = SweepGrid({{.path = "x", .values = std::move(places)}}),
          .keys = std::move(keys),
          .rows = SweepRows(std::move(rows))};
}

// One result, and x always 1.
inline SweepTable sweep_table_of(const Values& times) {
  std::vector<Values> results;
  for (const auto& time : times) results.push_back({time});
  return sweep_table_of(Values(times.size(), 1), {"time"}, results);
}

}  // namespace lockstep::testing
