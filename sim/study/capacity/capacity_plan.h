#pragma once

// One plan, with all that is told of it.
//
// Invariant: iteration, memory and band are what `predict` says of its scenario; time, cost and energy follow from
//            them by training_run.h.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/brief.h"
#include "sim/study/capacity/plan_options.h"
#include "sim/study/capacity/training_run.h"

namespace lockstep {

struct CapacityPlan {
  PlanOption option;
  std::string machine;
  std::int64_t gpus = 1;
  std::string layout;
  Overrides layout_changes = {};    // that a search of layouts made
  nlohmann::ordered_json scenario;  // that `predict` takes
  Brief brief;
  Bytes capacity;
  TrainingRun run;
  std::optional<Price> price = {};
  std::optional<Duration> low = {};  // of an iteration, the band's ends
  std::optional<Duration> high = {};
  bool is_on_front = false;  // no plan is both faster and cheaper
  std::vector<std::string> warnings = {};
};

}  // namespace lockstep
