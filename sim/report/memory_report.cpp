#include "sim/report/memory_report.h"

namespace lockstep {

MemoryReport report_memory(const Scenario& scenario, const Simulation& simulation, Time iteration_start) {
  const Run& run = simulation.steady;
  const MemoryUse standing = standing_memory(scenario, simulation);
  const MemoryPeak found = find_memory_peak(run, standing);
  MemoryReport memory{.peak = found.moment.use,
                      .standing = standing,
                      .moment = describe_moment(run.plan, found.moment),
                      .since_start = {},
                      .track = {},
                      .capacity = scenario.cluster.gpu.memory};
  if (!memory.moment.empty())
    memory.since_start = found.moment.time - iteration_start;
  for (const MemoryMoment& moment : track_memory(run, standing, found.representative))
    memory.track.emplace_back(moment.op == no_op ? Duration::zero() : moment.time - iteration_start,
                              moment.use.total());
  return memory;
}

}  // namespace lockstep
