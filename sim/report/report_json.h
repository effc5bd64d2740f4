#pragma once

// A report as the JSON document lockstep.result/1.
//
// Problem:   scripts outside the project read these keys, and two runs must give the same bytes.
// Idea:      keys in a fixed order; a time is its picoseconds over 10^12, the nearest double, printed as the
//            shortest decimal that reads back to it; bandwidths are GB/s (10^9).
// Invariant: every key of the contract is there, null where nothing is known.
// Reference: CONTRACT section 4, kept by tests/report/report_json_test.cpp.

#include <nlohmann/json.hpp>

#include "sim/report/report.h"

namespace lockstep {

nlohmann::ordered_json to_json(const Report& report, const LoadedScenario& scenario);

nlohmann::ordered_json to_json(const StalenessReport& staleness);

// One entry for all collectives that are alike.
nlohmann::ordered_json to_json(const std::vector<CollectiveGroup>& groups);

}  // namespace lockstep
