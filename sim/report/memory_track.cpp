#include "sim/report/memory_track.h"

#include <algorithm>

#include "sim/training/message_lanes.h"
#include "sim/training/shards.h"

namespace lockstep {
namespace {

struct TimedChange {
  Time time;
  OpId op;
  const MemoryChange* change;
};

std::vector<TimedChange> timed_changes(const Run& run, std::size_t representative) {
  std::vector<TimedChange> changes;
  run.iterations.back().memory.for_each(
      static_cast<std::uint32_t>(representative), [&](const MemoryChange& change, OpId op) {
        const std::vector<Time>& edge = change.edge == OpEdge::start ? run.timeline.start : run.timeline.end;
        changes.push_back({edge[op.index], op, &change});
      });
  const auto is_before = [](const TimedChange& a, const TimedChange& b) { return a.time < b.time; };
  if (!std::is_sorted(changes.begin(), changes.end(), is_before))
    std::stable_sort(changes.begin(), changes.end(), is_before);
  return changes;
}

// Calls visit(moment) for what stands and after every change.
template <class Visit>
void follow(const Run& run, const MemoryUse& standing, std::size_t representative, Visit visit) {
  MemoryMoment moment{.time = {}, .use = standing};
  visit(moment);
  for (const TimedChange& timed : timed_changes(run, representative)) {
    moment.time = timed.time;
    moment.op = timed.op;
    moment.edge = timed.change->edge;
    moment.use.of(timed.change->category) += timed.change->bytes;
    moment.use = with_allowance(moment.use);
    visit(moment);
  }
}

MemoryUse standing_memory_of(const Scenario& scenario, const Simulation& simulation, const Job& job,
                             std::int64_t ranks) {
  const bool has_half_copies = is_mixed(scenario.model.precision) && !scenario.model.measured;
  return standing_memory({.job = job,
                          .world = simulation.cluster->world,
                          .groups = simulation.cluster->groups,
                          .ranks = ranks,
                          .half_copies = Bytes{has_half_copies ? element_count(job.gradients) * 2 : 0}});
}

// Experts are divided between fewer ranks; what a process holds besides it holds once.
MemoryUse standing_memory_of(const Scenario& scenario, const Simulation& simulation, const Job& job) {
  const std::int64_t ranks = scenario.synchronised_ranks();
  if (job.kinds == nullptr)
    return standing_memory_of(scenario, simulation, job, ranks);
  MemoryUse use = standing_memory_of(scenario, simulation, job.kinds->dense.front(), ranks);
  const MemoryUse experts = standing_memory_of(scenario, simulation, job.kinds->experts.front(),
                                               copies_of_expert(scenario.training.layout));
  use.parameters += experts.parameters;
  use.gradients += experts.gradients;
  use.optimizer_states += experts.optimizer_states;
  use.communication_buffers += experts.communication_buffers - experts.library;
  return with_allowance(use);
}

bool has_servers_on_gpus(const Scenario& scenario) {
  return strategy_of(scenario).servers != nullptr &&
         strategy_of(scenario).servers(scenario.training).on == ServerPlace::gpu;
}

// Beside what the worker there holds. Ranks are simulated one by one; of asynchronous workers only the first is.
void add_servers(const Scenario& scenario, const Job& job, std::vector<MemoryUse>& standing) {
  const std::vector<ServerMemory> servers = server_memory(job);
  for (std::uint32_t server = 0; server < servers.size(); ++server) {
    const Rank gpu = gpu_of_server(server, static_cast<std::uint32_t>(scenario.cluster.nodes),
                                   static_cast<std::uint32_t>(scenario.cluster.gpus_per_node));
    if (gpu.index >= standing.size())
      continue;
    MemoryUse& use = standing[gpu.index];
    use.parameters += servers[server].variables;
    use.gradients += servers[server].sums;
    use.optimizer_states += servers[server].states;
    use = with_allowance(use);
  }
}

}  // namespace

std::vector<MemoryUse> standing_memory(const Scenario& scenario, const Simulation& simulation) {
  const Job& job = simulation.job;
  const std::size_t representatives = simulation.steady.lanes.compute.size();
  if (job.stages.empty()) {
    std::vector<MemoryUse> alike(representatives, standing_memory_of(scenario, simulation, job));
    if (has_servers_on_gpus(scenario))
      add_servers(scenario, job, alike);
    return alike;
  }
  std::vector<MemoryUse> standing(representatives);
  for (std::size_t stage = 0; stage < job.stages.size(); ++stage) {
    const MemoryUse of_stage = standing_memory_of(scenario, simulation, job.stages[stage]);
    for (const std::uint32_t role : simulation.cluster->cohorts[stage].roles) standing[role] = of_stage;
  }
  return standing;
}

void follow_memory(const Run& run, const MemoryUse& standing, std::size_t representative,
                   const std::function<void(const MemoryMoment&)>& visit) {
  follow(run, standing, representative, visit);
}

std::vector<MemoryMoment> track_memory(const Run& run, const MemoryUse& standing,
                                       std::size_t representative) {
  std::vector<MemoryMoment> moments;
  follow(run, standing, representative, [&](const MemoryMoment& moment) { moments.push_back(moment); });
  return moments;
}

MemoryPeak find_memory_peak(const Run& run, std::span<const MemoryUse> standing) {
  MemoryPeak peak{.representative = 0, .moment = {.time = {}, .use = standing.front()}};
  for (std::size_t i = 0; i < run.lanes.compute.size(); ++i)
    follow(run, standing[i], i, [&](const MemoryMoment& moment) {
      if (moment.use.total() > peak.moment.use.total())
        peak = {i, moment};
    });
  return peak;
}

std::string describe_moment(const Plan& plan, const MemoryMoment& moment) {
  if (moment.op == no_op)
    return "";
  const std::string& name = plan.names[section_of(plan, moment.op).name];
  return (moment.edge == OpEdge::start ? "at " : "after ") + name;
}

}  // namespace lockstep
