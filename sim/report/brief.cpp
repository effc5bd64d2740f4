#include "sim/report/brief.h"

#include "sim/report/memory_track.h"
#include "sim/report/rank_view.h"
#include "sim/report/report.h"
#include "sim/report/run_account.h"

namespace lockstep {
namespace {

Breakdown breakdown_of(const Simulation& simulation) {
  if (const auto& run = simulation.long_run)
    return mean_breakdown(run->accounts[run->critical], run->iterations);
  const Run& run = simulation.steady;
  return mean_breakdown(account_of(run, run.iterations.size()).totals[critical_representative(run)],
                        static_cast<std::int64_t>(run.iterations.size()) - 1);
}

}  // namespace

Brief summarise_briefly(const Scenario& scenario, const Simulation& simulation) {
  const Duration iteration = reported_iteration(scenario, simulation);
  const std::vector<MemoryUse> standing = standing_memory(scenario, simulation);
  Breakdown breakdown = breakdown_of(simulation);
  if (!simulation.updates)
    breakdown.checkpoint += iteration - iteration_without_checkpoints(simulation);
  return {.iteration = iteration,
          .breakdown = breakdown,
          .throughput = find_throughput(scenario, iteration),
          .memory = find_memory_peak(simulation.steady, standing).moment.use.total()};
}

}  // namespace lockstep
