#pragma once

// The section `compare`: which strategies stand beside each other, and what each is set to.
//
// Problem:   a comparison is one scenario many times, and a mistake in any of them must be found at load.
// Idea:      read the section, then load each scenario that follows from it as if the user had written it.

#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/load/load.h"
#include "sim/load/reading/load_context.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// Without the scenarios of the strategies.
ComparisonSpec read_comparison(const JsonReader& json, const Place& place);

// Those: each must load as it would by itself. Throws what is wrong with all of them.
void load_compared(LoadedScenario& scenario, const LoadOptions& options, std::vector<std::string>& warnings);

// But for what each strategy is set to.
nlohmann::ordered_json write_comparison(const ComparisonSpec& comparison);

}  // namespace lockstep
