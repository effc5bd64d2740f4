#pragma once

// From measured steps to the step of this scenario.
//
// Problem:   "103.6 ms" was measured with one model, batch, precision and GPU. A change of any of them, in the file
//            or by whoever varies it, is a step that nobody measured.
// Idea:      each measured step is given the scenario that it is of: this one, with its conditions as the document
//            stood when the step was stated, and as the step's own object says. Where that is another scenario, the
//            model of computing carries the time over (run/step_transfer), and a warning says so.
// Invariant: what was not changed is met to the picosecond, without a warning. The conditions that differ are written
//            beside the time, in what is resolved and in what variants are loaded from: it reads back to the same.
// Cost:      one load for each step whose conditions differ.

#include <nlohmann/json.hpp>
#include <vector>

#include "sim/base/error.h"
#include "sim/load/load.h"
#include "sim/load/read_measured_steps.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

struct StatedSteps {
  const std::vector<StatedStep>& steps;
  const nlohmann::ordered_json& document;  // as it stood when they were stated
  const LoadOptions& options;
};

// What `scenario` computes by, from now on. Throws ConfigError where a step is impossible, contradicts another or
// says nothing of this scenario.
void transfer_measured_steps(LoadedScenario& scenario, const StatedSteps& stated,
                             std::vector<std::string>& warnings);

// Into a section `compute`, as they would be read from there.
void write_measured_steps(const LoadedScenario& scenario, nlohmann::ordered_json& compute);

}  // namespace lockstep
