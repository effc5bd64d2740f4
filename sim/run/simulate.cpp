#include "sim/run/simulate.h"

#include <algorithm>
#include <utility>

#include "sim/run/describe_job.h"
#include "sim/run/plan_sizes.h"
#include "sim/run/rehearsal.h"
#include "sim/run/run_extent.h"

namespace lockstep {
namespace {

std::vector<std::string> rehearse_within_limits(const Scenario& scenario, const Cluster& cluster, Job& job) {
  return rehearse(job, scenario.cluster.ranks(), [&](const Job& tried) {
    PlanSizes sizes(scenario, cluster);
    WrittenPlan written = sizes.write(tried, {.iterations = 2}, rehearsals(scenario));
    sizes.check();
    return run_plan(std::move(written), scenario, tried, cluster);
  });
}

LongRun run_windows(const Scenario& scenario, const Job& job, const Cluster& cluster, std::int64_t window) {
  const Run run =
      prepare(write_plan(job, cluster, {.iterations = window, .is_window = true}), scenario, job, cluster);
  const Jitter jitter = jitter_of(scenario);
  return run_long({.plan = run.plan,
                   .lanes = run.lanes,
                   .iterations = run.iterations,
                   .capacities = cluster.topology.capacities(),
                   .routes = run.routes,
                   .jitter = jitter,
                   .ranks = cluster.topology.ranks(),
                   .measured = whole_periods(scenario, scenario.simulation.iterations),
                   .timeout = scenario.communication.timeout});
}

Simulation run_scenario(const Scenario& scenario) {
  Simulation simulation;
  simulation.job = describe_job(scenario);
  simulation.cluster = build_cluster(scenario);
  const Cluster& cluster = *simulation.cluster;
  simulation.notes = rehearse_within_limits(scenario, cluster, simulation.job);
  if (!cluster.world.mesh_cycles.are_most)
    simulation.notes.push_back("rings: " + describe(cluster.world.mesh_cycles));
  PlanSizes sizes(scenario, cluster);
  WrittenPlan first = sizes.write(simulation.job, {.is_first = true});
  WrittenPlan steady =
      sizes.write(simulation.job, {.iterations = whole_periods(scenario, shown_iterations(scenario)) + 1});
  const bool is_long = is_long_run(scenario);
  const std::int64_t window = window_length(scenario, first.plan.size());
  if (is_long) {
    sizes.add_long_run(steady);
    sizes.add_window(steady, window);
  }
  if (strategy_of(scenario).is_asynchronous)
    sizes.add_events(expected_update_events(scenario));
  sizes.check();
  simulation.size = sizes.size();
  simulation.first = run_plan(std::move(first), scenario, simulation.job, cluster);
  simulation.steady = run_plan(std::move(steady), scenario, simulation.job, cluster);
  simulation.timed_out = end_at_timeout(simulation.steady, scenario);
  if (is_long) {
    simulation.long_run = run_windows(scenario, simulation.job, cluster, window);
    simulation.timed_out = simulation.long_run->timed_out;
  }
  if (strategy_of(scenario).is_asynchronous)
    simulation.updates = run_updates(scenario, simulation.job, cluster.topology);
  return simulation;
}

}  // namespace

Simulation simulate(const Scenario& scenario) {
  return with_file(scenario, [&] { return run_scenario(scenario); });
}

}  // namespace lockstep
