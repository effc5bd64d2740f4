#pragma once

// One iteration after another of a pipeline's stages, each under its own context.
//
// Problem:   a strategy writes for ranks that are all alike; the ranks of different stages are not.
// Idea:      every stage is a cohort with lanes, groups and a job of its own, and a strategy's synchroniser sees
//            nothing else. What it writes of messages and memory, by place in its cohort, is told by representative
//            of the whole (StrategyContext::roles).
// Invariant: the collectives of all stages stand in the order in which they were written.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/run/cluster.h"
#include "sim/training/host_lane.h"
#include "sim/training/schedules/pipeline.h"
#include "sim/training/strategy.h"

namespace lockstep {

// Which iteration of a run it is, and what stands beside its lanes.
struct IterationNumber {
  std::int64_t index = 0;
  bool is_first = false;
  bool is_last = false;  // of its run: the one whose memory is followed
  InputPipeline* input = nullptr;
  HostLane* host = nullptr;
};

class StageWriter {
 public:
  // All must outlive it; `lanes.of_groups`: one for each set of groups, and one for what stages send back.
  StageWriter(PlanWriter& writer, const Job& job, const Cluster& cluster, const RankLanes& lanes,
              KnownChoices& choices);

  // Of the ranks that load batches.
  const Cohort& first_cohort() const { return cluster_.cohorts.front(); }
  std::span<const LaneId> first_compute() const { return stages_.front().lanes.compute; }

  // Appends an iteration to `ops`.
  void write(const IterationNumber& number, IterationOps& ops);

 private:
  struct Stage {
    const Job* job = nullptr;
    const Cohort* cohort = nullptr;
    RankLanes lanes = {};
    ProcessGroup group = {};  // whose gradients are synchronised
    std::vector<ProcessGroup> subgroups = {};
    Carried carried = {};
    std::optional<HostLane> host = {};
  };

  struct Written;

  StrategyContext context_of(Stage& stage, const IterationNumber& number, IterationOps& ops,
                             WatchedOps& watched) const;
  PipelineStage pipeline_stage(const Stage& stage, const Written& written) const;

  PlanWriter& writer_;
  const Job& job_;
  const Cluster& cluster_;
  KnownChoices& choices_;
  std::vector<Stage> stages_;
  std::vector<WrittenGroup> lines_;  // along the pipeline
};

}  // namespace lockstep
