#pragma once

// A plan's answer as text and as the JSON document lockstep.plan/1.
//
// Invariant: every key of the contract is there, null where nothing is known.
// Reference: CONTRACT section 7.

#include <nlohmann/json.hpp>
#include <string>

#include "sim/study/capacity/plan_search.h"

namespace lockstep {

std::string to_text(const PlanAnswer& answer);
nlohmann::ordered_json to_json(const PlanAnswer& answer);

// Why there is no plan, and which would be nearest.
std::string describe_no_plan(const PlanAnswer& answer);

// "computing (71.2 %)": what most of an iteration goes into.
std::string limit_of(const Brief& brief);

}  // namespace lockstep
