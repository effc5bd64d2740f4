#include "sim/report/memory_report.h"

#include <algorithm>

namespace lockstep {
namespace {

// A model that was measured as a whole does not, nor one whose layers state times alone.
bool tells_activations(const Job& job) {
  return std::any_of(job.layers.begin(), job.layers.end(),
                     [](const LayerWork& layer) { return layer.activations > Bytes{0}; });
}

}  // namespace

MemoryReport report_memory(const Scenario& scenario, const Simulation& simulation, Time iteration_start) {
  const Run& run = simulation.steady;
  const std::vector<MemoryUse> all = standing_memory(scenario, simulation);
  const MemoryPeak found = find_memory_peak(run, all);
  const MemoryUse& standing = all[found.representative];
  MemoryReport memory{.peak = found.moment.use,
                      .standing = standing,
                      .moment = describe_moment(run.plan, found.moment),
                      .since_start = {},
                      .track = {},
                      .capacity = scenario.cluster.gpu.memory,
                      .counts_activations = tells_activations(simulation.job)};
  if (!memory.moment.empty())
    memory.since_start = found.moment.time - iteration_start;
  follow_memory(run, standing, found.representative, [&](const MemoryMoment& moment) {
    memory.track.emplace_back(moment.op == no_op ? Duration::zero() : moment.time - iteration_start,
                              moment.use.total());
  });
  return memory;
}

}  // namespace lockstep
