#pragma once

// The contract of a training strategy: write one iteration for every representative rank.
//
// Problem:   strategies differ in when they send what; everything else about a step is alike.
// Idea:      a strategy is a function that appends one iteration to the plan, following whatever already
//            stands on the ranks' lanes, and tells which ops are of interest to the report.
// Invariant: a strategy names ranks, bytes and work, never links or seconds.

#include <string>
#include <vector>

#include "sim/base/registry.h"
#include "sim/collectives/collective.h"
#include "sim/plan/plan_writer.h"
#include "sim/training/job.h"

namespace lockstep {

// The lanes of each representative, in the writer's order.
struct RankLanes {
  std::vector<LaneId> compute;
  std::vector<LaneId> communication;
};

// One bucket's way through an iteration; ops by representative.
struct BucketOps {
  std::uint32_t index = 0;
  Bytes bytes;          // gradient bytes
  Bytes bytes_on_wire;  // after compression
  std::uint32_t parameters = 0;
  std::string algorithm;
  std::string protocol;
  std::vector<OpId> ready;
  CollectiveOps collective;
};

struct IterationOps {
  OpId first;  // ops [first, last) make up the iteration
  OpId last;
  std::vector<BucketOps> buckets;
};

struct StrategyContext {
  PlanWriter& writer;
  const Job& job;
  const Communicator& world;
  const RankLanes& lanes;
  bool is_first_iteration = false;
};

struct Strategy {
  IterationOps (*write_iteration)(const StrategyContext& context);
  std::string description;
};

}  // namespace lockstep
