#pragma once

// A strategy's iterations as a plan, before anything has a price.
//
// Idea:      the lanes of every representative, where a window of a longer run goes on, then one iteration
//            after another by the strategy's own writer.
// Invariant: depends on the job and the cluster alone.

#include <cstdint>
#include <vector>

#include "sim/plan/plan_writer.h"
#include "sim/run/cluster.h"
#include "sim/run/time_account.h"
#include "sim/training/strategy.h"

namespace lockstep {

struct WrittenPlan {
  Plan plan;
  RankLanes lanes;
  std::vector<IterationOps> iterations;
  std::vector<OpId> batches = {};  // where each begins, if they have to be loaded
};

struct PlanExtent {
  std::int64_t iterations = 1;
  bool is_first = false;   // of the whole run
  bool is_window = false;  // of a longer run
  std::int64_t room = PlanWriter::any_room;
};

WrittenPlan write_plan(const Job& job, const Cluster& cluster, const PlanExtent& extent);

}  // namespace lockstep
