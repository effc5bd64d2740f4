#pragma once

// The answer of a search for layouts, for people and for programs.
//
// Invariant: both depend on the answer alone. What a layout loses against the best is told by the parts of
//            the breakdown that grew most, in percent of the best's iteration.

#include <nlohmann/json.hpp>
#include <string>

#include "sim/study/answers/layout_search.h"

namespace lockstep {

std::string to_text(const LayoutAnswer& answer);
nlohmann::ordered_json to_json(const LayoutAnswer& answer);

// "pipeline bubble +12.0 %, exposed communication +3.1 %"
std::string losses_against(const FoundLayout& best, const FoundLayout& other);

// "--set training.tensor_parallel=8 --set ..."
std::string set_arguments(const Overrides& changes);

// The problem where nothing fits: the nearest, and what it lacks.
std::string describe_nothing_fits(const LayoutAnswer& answer);

}  // namespace lockstep
