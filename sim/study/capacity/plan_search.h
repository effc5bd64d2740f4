#pragma once

// Which clusters train a model in time and for the money, and which of them is the best.
//
// Problem:   machines, numbers of nodes and strategies multiply to thousands of clusters, and of some of them
//            the layout has to be searched as well.
// Idea:      every option is loaded and bounded (layout_bound.h, or the GPUs' peak where its layout is
//            searched): what cannot fit, or not in time or for the money, goes. The rest is simulated in the
//            order of its bound, a batch at a time on all cores, until nothing that is left can be among the
//            best or be undercut by none in both time and cost. Only plans that are told get a band.
// Invariant: the same answer as of simulating every option, and the same bytes on any number of threads: what
//            is cut depends on whole batches alone.
// Cost:      describing each option, a simulation for each that is not cut, a search of layouts (on all cores)
//            for each option that asks for one.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/capacity/plan_outlook.h"
#include "sim/study/capacity/plan_trials.h"

namespace lockstep {

struct RejectedOption {
  PlanOption option;
  std::string machine;
  Rejection kind = Rejection::not_loadable;
  std::string reason;
};

// What is nearest to the goal where nothing reaches it.
struct NearestPlan {
  CapacityPlan plan;
  std::string lacking;  // "12.3 days more than the deadline"
};

struct PlanAnswer {
  std::string name;
  PlanGoal goal;
  PlanObjective objective = PlanObjective::cost;
  std::size_t options = 0;
  std::size_t simulated = 0;
  std::size_t cut_by_bound = 0;          // neither among the best nor on the front
  std::vector<CapacityPlan> plans = {};  // best first: at most `top`, and all on the front
  std::vector<RejectedOption> rejected = {};
  std::optional<NearestPlan> nearest = {};  // where there is no plan
  std::optional<PlanOutlook> outlook = {};  // of the best
  std::vector<std::string> warnings = {};
};

// Throws ConfigError where the request cannot be planned at all.
PlanAnswer search_plans(const PlanQuestion& question);

// All that it reads: the request, and the profiles of every candidate.
std::vector<std::string> files_of_plan(const PlanQuestion& question);

}  // namespace lockstep
