#include "sim/run/stage_writer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/base/check.h"
#include "sim/run/layout_groups.h"
#include "sim/training/expert_synchroniser.h"

namespace lockstep {
namespace {

template <class T>
std::vector<T> of_cohort(const std::vector<T>& by_representative, const Cohort& cohort) {
  std::vector<T> own;
  if (!by_representative.empty())
    for (const std::uint32_t role : cohort.roles) own.push_back(by_representative[role]);
  return own;
}

RankLanes lanes_of(const RankLanes& lanes, const Cohort& cohort) {
  RankLanes own{.compute = of_cohort(lanes.compute, cohort),
                .communication = of_cohort(lanes.communication, cohort)};
  own.issue = of_cohort(lanes.issue, cohort);
  for (const std::vector<LaneId>& of_group : lanes.of_groups)
    own.of_groups.push_back(of_cohort(of_group, cohort));
  return own;
}

}  // namespace

StageWriter::StageWriter(PlanWriter& writer, const Job& job, const Cluster& cluster, const RankLanes& lanes,
                         KnownChoices& choices)
    : writer_(writer), job_(job), cluster_(cluster), choices_(choices) {
  for (std::size_t number = 0; number < job.stages.size(); ++number) {
    Stage& stage = stages_.emplace_back();
    stage.job = &job.stages[number];
    stage.cohort = &cluster.cohorts[number];
    stage.lanes = lanes_of(lanes, *stage.cohort);
  }
  for (Stage& stage : stages_)
    if (stage.job->host)
      stage.host.emplace(writer, stage.lanes.compute, stage.lanes.issue, *stage.job->host);
  const Roles& roles = cluster.symmetry.roles;
  for (std::size_t set = 0; set < cluster.groups.size(); ++set) {
    if (cluster.groups[set].name == pipeline_group)
      lines_ = written_groups(cluster.groups[set], roles);
    for (Stage& stage : stages_) {
      auto group = process_group_of(*stage.cohort, cluster.groups[set], roles, stage.lanes.of_groups[set]);
      if (group && group->name == data_group)
        stage.group = *std::move(group);
      else if (group)
        stage.subgroups.push_back(*std::move(group));
    }
  }
}

// Of one iteration.
struct StageWriter::Written {
  WatchedOps watched = {};
  std::optional<StrategyContext> context = {};
  std::unique_ptr<Synchroniser> synchroniser = {};
};

// Batches are drawn for the ranks of the first stage.
StrategyContext StageWriter::context_of(Stage& stage, const IterationNumber& number, IterationOps& ops,
                                        WatchedOps& watched) const {
  return {.writer = writer_,
          .job = *stage.job,
          .group = stage.group,
          .subgroups = stage.subgroups,
          .compute = stage.lanes.compute,
          .cluster = {cluster_.topology.nodes(), cluster_.topology.gpus_per_node()},
          .communications = ops.communications,
          .carried = stage.carried,
          .watched = watched,
          .iteration = number.index,
          .is_first_iteration = number.is_first,
          .input = &stage == &stages_.front() ? number.input : nullptr,
          .host = stage.host ? &*stage.host : nullptr,
          .memory = number.is_last ? &ops.memory : nullptr,
          .roles = stage.cohort->roles,
          .choices = &choices_};
}

PipelineStage StageWriter::pipeline_stage(const Stage& stage, const Written& written) const {
  const std::size_t sets = cluster_.groups.size();
  return {.context = &*written.context,
          .synchroniser = written.synchroniser.get(),
          .cohort = stage.cohort,
          .forward_sends = stage.lanes.of_groups[sets - 1],
          .backward_sends = stage.lanes.of_groups[sets]};
}

void StageWriter::write(const IterationNumber& number, IterationOps& ops) {
  const Strategy& strategy = strategy_named(job_.training.strategy);
  std::vector<Written> written(stages_.size());
  std::vector<PipelineStage> pipeline;
  for (std::size_t index = 0; index < stages_.size(); ++index) {
    const CohortScope scope(writer_, stages_[index].cohort);
    if (stages_[index].host)
      stages_[index].host->begin_iteration();
    written[index].context.emplace(context_of(stages_[index], number, ops, written[index].watched));
    written[index].synchroniser = synchroniser_of(strategy, *written[index].context);
    pipeline.push_back(pipeline_stage(stages_[index], written[index]));
  }
  write_pipeline(pipeline_schedule_named(job_.training.layout.schedule), writer_, pipeline,
                 {.lines = lines_, .communications = &ops.communications});
}

}  // namespace lockstep
