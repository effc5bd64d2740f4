#pragma once

// The memory of a page: whether it fits, what is held over an iteration and at its most, and what would make it fit.
//
// Invariant: every figure is one of the JSON result, under the same key, so that page and result cannot disagree.

#include <nlohmann/json.hpp>

#include "sim/report/report.h"

namespace lockstep {

// All keys of it, for the page's view.
nlohmann::ordered_json memory_view(const Report& report);

}  // namespace lockstep
