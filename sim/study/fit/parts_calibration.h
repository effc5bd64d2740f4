#pragma once

// One fit to all tables as files: a profile for each part, and one for each machine and stack that was measured.
//
// Idea:      a part's bands are of the machines with it, each predicted without its own tables; a machine's are of its
//            cells, each predicted by the rest. What concerns computing stays as the profiles at hand say it.
// Invariant: figures have four digits, and all errors are of the figures as written.
// Cost:      the fit of all parts; unless quick, one more fit a cell.

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "sim/load/reading/profile_store.h"
#include "sim/study/bench/measured_tables.h"

namespace lockstep {

struct PartsCalibration {
  std::map<std::string, nlohmann::ordered_json> parts;         // by name
  std::map<std::string, nlohmann::ordered_json> calibrations;  // by profile
  std::string text;                                            // each part, on what it rests
};

struct PartsOptions {
  bool holds_no_cells_out = false;
  std::function<void(const std::string&)> tell = {};  // what is done next
};

PartsCalibration calibrate_parts(std::span<const MeasuredTable> tables, const PartsOptions& options,
                                 const ProfileStore& store);

}  // namespace lockstep
