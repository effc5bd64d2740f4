#pragma once

// The clusters that a request leaves to choose from: machine by machine, node count by node count.
//
// Invariant: their order is that of the request, on every machine; no option is there twice.

#include <optional>
#include <string>
#include <vector>

#include "sim/load/load.h"
#include "sim/report/prediction.h"
#include "sim/study/capacity/plan_request.h"

namespace lockstep {

// A cluster and how it trains.
struct PlanOption {
  std::size_t candidate = 0;  // of the request
  std::int64_t nodes = 1;
  std::string strategy = {};  // as the request names it; empty: as `training` says
  Overrides changes = {};     // of the request's scenario
};

// The scenario that options change.
LoadRequest base_of(const PlanRequest& request, const std::string& data_directory, bool accepts_any_size);

// Throws ConfigError where there are more than can be planned, or a machine that is not known.
std::vector<PlanOption> plan_options(const PlanRequest& request, const ScenarioVariants& variants);

// What the goal says; else cost, where every candidate's machine has a price. Throws ConfigError where the goal needs
// prices and some have none.
PlanObjective objective_of(const PlanRequest& request, const ScenarioVariants& variants);

// "fsdp, dp 8 x tp 8 x pp 2, 1f1b, micro-batch 1 x 16, recompute full".
std::string layout_text(const Scenario& scenario, const Overrides& changes);

}  // namespace lockstep
