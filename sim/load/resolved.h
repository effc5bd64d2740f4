#pragma once

// The scenario as it was understood: every default filled in, every number with its origin.
//
// Problem:   a prediction can only be judged, or made again, by someone who sees all that went into it.
// Idea:      the typed scenario is written back as JSON of the same shape, machines and calibrations inline.
// Invariant: a resolved scenario is a scenario: loading it gives the same resolved scenario.

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/scenario/scenario.h"

namespace lockstep {

nlohmann::ordered_json write_gpu(const GpuSpec& gpu);

nlohmann::ordered_json resolved_scenario(const LoadedScenario& scenario);

// JSON pointer -> "given", "default ...", "derived ..." or "profile FILE: source". What has no entry of its
// own has that of the nearest pointer above it. `origins` is what the readers noted.
nlohmann::ordered_json provenance_of(const LoadedScenario& scenario,
                                     const std::map<std::string, std::string>& origins);

}  // namespace lockstep
