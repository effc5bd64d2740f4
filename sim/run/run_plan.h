#pragma once

// One plan that is run: priced, routed, disturbed, timed.
//
// Idea:      a plan says what is done and in which order; here it learns what that takes on this cluster.
// Invariant: the same plan, scenario and cluster give the same timeline.

#include <optional>
#include <vector>

#include "sim/network/route_table.h"
#include "sim/plan/plan.h"
#include "sim/plan/timeline.h"
#include "sim/run/cluster.h"
#include "sim/run/long_run.h"
#include "sim/run/size_watch.h"
#include "sim/run/written_plan.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// One plan that has been run. `iterations` tells where each iteration stands in it.
struct Run {
  Plan plan;
  Timeline timeline;
  RankLanes lanes;
  std::vector<IterationOps> iterations;
  RouteTable routes;
  std::vector<OpId> batches = {};  // where each begins, if they have to be loaded
};

// Everything but when.
Run prepare(WrittenPlan written, const Scenario& scenario, const Job& job, const Cluster& cluster);

// What the kernels of a plan that is written take: as priced, for batches of their lengths, disturbed.
void price_again(Run& run, const Scenario& scenario, const Job& job, const Cluster& cluster);

// `watch`: null: nobody is told of it.
Run run_plan(WrittenPlan written, const Scenario& scenario, const Job& job, const Cluster& cluster,
             SizeWatch* watch = nullptr);

// The run ends with the first collective that waits too long. What is reported are the iterations before it;
// where there is none after the warm-up, the one it lies in, as if it had been let go on.
std::optional<TimedOut> end_at_timeout(Run& run, const Scenario& scenario);

}  // namespace lockstep
