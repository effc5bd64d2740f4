#pragma once

// At which clock the scenario's GPU multiplies, and why.
//
// Reference: compute/clock.h.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/scenario/scenario.h"

namespace lockstep {

// "86 % of boost in large products, which draw 620 W at boost, of 400 W"
std::string tell_clock(const Scenario& scenario);

// `share` of boost, `board_w` and `drawn_w` at boost, of a large product; null where nobody knows.
nlohmann::ordered_json clock_json(const Scenario& scenario);

}  // namespace lockstep
