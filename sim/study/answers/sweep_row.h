#pragma once

// One cell of a sweep, predicted.
//
// Invariant: results stand by key, and are all null where there is an error, which is one line.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep {

struct SweepRow {
  std::size_t cell = 0;  // of the grid
  std::vector<nlohmann::ordered_json> results = {};
  std::string error = {};
};

}  // namespace lockstep
