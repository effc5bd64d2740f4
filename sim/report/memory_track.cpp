#include "sim/report/memory_track.h"

#include <algorithm>

namespace lockstep {
namespace {

struct TimedChange {
  Time time;
  const MemoryChange* change;
};

std::vector<TimedChange> timed_changes(const Run& run, std::size_t representative) {
  std::vector<TimedChange> changes;
  for (const MemoryChange& change : run.iterations.back().memory) {
    const OpId op = change.at[representative];
    if (op == no_op)
      continue;
    const std::vector<Time>& edge = change.edge == OpEdge::start ? run.timeline.start : run.timeline.end;
    changes.push_back({edge[op.index], &change});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const TimedChange& a, const TimedChange& b) { return a.time < b.time; });
  return changes;
}

// Calls visit(moment) for what stands and after every change.
template <class Visit>
void follow(const Run& run, const MemoryUse& standing, std::size_t representative, Visit visit) {
  MemoryMoment moment{.time = {}, .use = standing};
  visit(moment);
  for (const TimedChange& timed : timed_changes(run, representative)) {
    moment.time = timed.time;
    moment.op = timed.change->at[representative];
    moment.edge = timed.change->edge;
    moment.use.of(timed.change->category) += timed.change->bytes;
    moment.use = with_allowance(moment.use);
    visit(moment);
  }
}

}  // namespace

MemoryUse standing_memory(const Scenario& scenario, const Simulation& simulation) {
  const Bytes half{is_mixed(scenario.model.precision) ? parameter_count(scenario.model.model) * 2 : 0};
  return standing_memory({.job = simulation.job,
                          .world = simulation.cluster->world,
                          .groups = simulation.cluster->groups,
                          .half_copies = half});
}

std::vector<MemoryMoment> track_memory(const Run& run, const MemoryUse& standing,
                                       std::size_t representative) {
  std::vector<MemoryMoment> moments;
  follow(run, standing, representative, [&](const MemoryMoment& moment) { moments.push_back(moment); });
  return moments;
}

MemoryPeak find_memory_peak(const Run& run, const MemoryUse& standing) {
  MemoryPeak peak{.representative = 0, .moment = {.time = {}, .use = standing}};
  for (std::size_t i = 0; i < run.lanes.compute.size(); ++i)
    follow(run, standing, i, [&](const MemoryMoment& moment) {
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
