#include "sim/run/written_plan.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "sim/collectives/known_choices.h"
#include "sim/run/layout_groups.h"
#include "sim/run/stage_writer.h"
#include "sim/training/host_lane.h"
#include "sim/training/program_writer.h"
#include "sim/training/schedules/schedule.h"

namespace lockstep {
namespace {

std::vector<LaneId> make_communication_lanes(PlanWriter& writer, const Job& job, std::uint32_t communicator) {
  std::vector<LaneId> lanes;
  for (const Rank rank : writer.representatives())
    lanes.push_back(
        writer.lane({.rank = rank,
                     .kind = LaneKind::communication,
                     .index = communicator,
                     .slots = static_cast<std::uint32_t>(job.communication.collectives_in_flight)}));
  return lanes;
}

// Where the GPU may wait for it: of a pipeline of any stage.
bool has_host(const Job& job) {
  return job.host ||
         std::any_of(job.stages.begin(), job.stages.end(), [](const Job& stage) { return stage.host; });
}

RankLanes make_lanes(PlanWriter& writer, const Job& job, std::size_t group_sets) {
  RankLanes lanes;
  for (const Rank rank : writer.representatives()) {
    lanes.compute.push_back(writer.lane({.rank = rank, .kind = LaneKind::compute}));
    lanes.communication.push_back(
        writer.lane({.rank = rank,
                     .kind = LaneKind::communication,
                     .slots = static_cast<std::uint32_t>(job.communication.collectives_in_flight)}));
  }
  for (std::uint32_t set = 0; set < group_sets; ++set)
    lanes.of_groups.push_back(make_communication_lanes(writer, job, set + 1));
  if (has_host(job))
    for (const Rank rank : writer.representatives())
      lanes.issue.push_back(writer.lane({.rank = rank, .kind = LaneKind::issue}));
  return lanes;
}

// Whose gradients a strategy synchronises: all ranks', where no layout says otherwise.
const ProcessGroup& synchronised(std::span<const ProcessGroup> groups) {
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [](const ProcessGroup& group) { return group.name == data_group; });
  return found != groups.end() ? *found : groups.front();
}

// Of ranks that all run the same layers.
void write_alike(PlanWriter& writer, const Job& job, const Cluster& cluster, const RankLanes& lanes,
                 std::span<const ProcessGroup> groups, Carried& carried, KnownChoices& choices,
                 const IterationNumber& number, IterationOps& ops) {
  write_scheduled_iteration(
      strategy_named(job.training.strategy),
      {.writer = writer,
       .job = job,
       .group = synchronised(groups),
       .subgroups = groups.subspan(1),
       .compute = lanes.compute,
       .cluster = {cluster.topology.nodes(), cluster.topology.gpus_per_node(), cluster.topology.hosts()},
       .communications = ops.communications,
       .carried = carried,
       .watched = ops.watched,
       .iteration = number.index,
       .is_first_iteration = number.is_first,
       .input = number.input,
       .host = number.host,
       .memory = number.is_last ? &ops.memory : nullptr,
       .choices = &choices});
}

// `write`: appends what an iteration consists of.
template <class Write>
IterationOps write_iteration(PlanWriter& writer, const IterationNumber& number, const Write& write) {
  const auto here = [&] { return OpId{static_cast<std::uint32_t>(writer.size())}; };
  IterationOps ops{.first = here(), .last = {}, .communications = {}, .memory = {}, .watched = {}};
  writer.section("begin", Category::other);  // of what a strategy marks before its first section
  if (number.host != nullptr)
    number.host->begin_iteration();
  write(number, ops);
  ops.last = here();
  return ops;
}

// Where a window of a longer run goes on: one delay on each lane that keeps its order (long_run.h).
void write_starts(PlanWriter& writer, const RankLanes& lanes, const Job& job) {
  writer.section("go on", Category::other);
  for (const LaneId lane : lanes.compute) writer.delay(lane, Duration::zero());
  for (const LaneId lane : lanes.issue) writer.delay(lane, Duration::zero());
  if (job.communication.collectives_in_flight > 1)
    return;
  for (const LaneId lane : lanes.communication) writer.delay(lane, Duration::zero());
  for (const std::vector<LaneId>& of_group : lanes.of_groups)
    for (const LaneId lane : of_group) writer.delay(lane, Duration::zero());
}

}  // namespace

WrittenPlan write_plan(const Job& job, const Cluster& cluster, const PlanExtent& extent) {
  PlanWriter writer(cluster.symmetry.roles, extent.room, &cluster.traffics);
  const bool is_pipeline = !job.stages.empty();
  WrittenPlan written{.plan = {},
                      .lanes = make_lanes(writer, job, cluster.groups.size() + (is_pipeline ? 1 : 0)),
                      .iterations = {}};
  const std::vector<ProcessGroup> groups =
      process_groups(cluster.world, cluster.groups, cluster.symmetry.roles, written.lanes);
  if (extent.is_window)
    write_starts(writer, written.lanes, job);
  KnownChoices choices;
  std::optional<StageWriter> stages;
  if (is_pipeline)
    stages.emplace(writer, job, cluster, written.lanes, choices);
  std::optional<ProgramWriter> program;
  if (job.program)
    program.emplace(writer, job, groups, written.lanes, choices);
  std::optional<InputPipeline> input;
  if (job.input) {
    const CohortScope scope(writer, is_pipeline ? &stages->first_cohort() : nullptr);
    input.emplace(
        writer, is_pipeline ? stages->first_compute() : std::span<const LaneId>(written.lanes.compute),
        *job.input, extent.is_first ? InputPipeline::Beginning::of_a_run : InputPipeline::Beginning::steady);
  }
  std::optional<HostLane> host;
  if (job.host)
    host.emplace(writer, written.lanes.compute, written.lanes.issue, *job.host);
  Carried carried;
  written.iterations.reserve(static_cast<std::size_t>(extent.iterations));
  for (std::int64_t iteration = 0; iteration < extent.iterations; ++iteration) {
    const IterationNumber number{iteration, extent.is_first, iteration + 1 == extent.iterations,
                                 input ? &*input : nullptr, host ? &*host : nullptr};
    if (iteration == 1)
      writer.expect_more(extent.iterations - iteration);
    written.iterations.push_back(
        write_iteration(writer, number, [&](const IterationNumber&, IterationOps& ops) {
          if (program)
            program->write(number.index, ops);
          else if (stages)
            stages->write(number, ops);
          else
            write_alike(writer, job, cluster, written.lanes, groups, carried, choices, number, ops);
        }));
  }
  if (input)
    written.batches = input->begins();
  written.plan = std::move(writer).finish();
  return written;
}

}  // namespace lockstep
