#include "sim/run/simulate.h"

#include <algorithm>
#include <utility>

#include "sim/run/describe_job.h"
#include "sim/run/folding.h"
#include "sim/run/plan_sizes.h"
#include "sim/run/rehearsal.h"
#include "sim/run/run_extent.h"

namespace lockstep {
namespace {

// The plans of a run, and the window of a long one: none runs before all are known to be small enough.
struct WrittenRun {
  WrittenPlan first;
  WrittenPlan steady;
  std::int64_t window = 1;
  RunSize size;
};

LentCluster find_cluster(const Scenario& scenario, RoleDetail detail, ClusterStore* clusters);
std::vector<std::string> rehearse_within_limits(const Scenario& scenario, const Cluster& cluster, Job& job);
WrittenRun write_run(const Scenario& scenario, const Job& job, const Cluster& cluster, bool with_first);
void run_all_iterations(Simulation& simulation, const Scenario& scenario, std::int64_t window);

Simulation run_scenario(const Scenario& scenario, const SimulationOptions& options) {
  Simulation simulation;
  simulation.job = describe_job(scenario);
  simulation.cluster = find_cluster(scenario, RoleDetail::rings, options.clusters);
  simulation.notes = rehearse_within_limits(scenario, *simulation.cluster, simulation.job);
  const bool with_first = options.with_first && has_first_iteration(scenario);
  WrittenRun written = write_run(scenario, simulation.job, *simulation.cluster, with_first);
  if (needs_finer_roles(scenario, simulation.cluster->groups, written.steady.iterations)) {
    written = {};
    simulation.cluster = find_cluster(scenario, RoleDetail::all_flows, options.clusters);
    written = write_run(scenario, simulation.job, *simulation.cluster, with_first);
  }
  const Cluster& cluster = *simulation.cluster;
  simulation.size = written.size;
  if (with_first)
    simulation.first = run_plan(std::move(written.first), scenario, simulation.job, cluster);
  simulation.steady = run_plan(std::move(written.steady), scenario, simulation.job, cluster);
  simulation.timed_out = end_at_timeout(simulation.steady, scenario);
  run_all_iterations(simulation, scenario, written.window);
  return simulation;
}

LentCluster find_cluster(const Scenario& scenario, RoleDetail detail, ClusterStore* clusters) {
  return clusters != nullptr ? clusters->lend(scenario, detail)
                             : LentCluster(build_cluster(scenario, detail).release());
}

std::vector<std::string> rehearse_within_limits(const Scenario& scenario, const Cluster& cluster, Job& job) {
  std::vector<std::string> notes = rehearse(job, scenario.cluster.ranks(), [&](const Job& tried) {
    PlanSizes sizes(scenario, cluster);
    WrittenPlan written = sizes.write(tried, {.iterations = 2}, rehearsals(scenario));
    sizes.check();
    return run_plan(std::move(written), scenario, tried, cluster);
  });
  if (!cluster.world.mesh_cycles.are_most)
    notes.push_back("rings: " + describe(cluster.world.mesh_cycles));
  return notes;
}

WrittenRun write_run(const Scenario& scenario, const Job& job, const Cluster& cluster, bool with_first) {
  PlanSizes sizes(scenario, cluster);
  const bool is_long = is_long_run(scenario);
  WrittenRun written;
  if (with_first || is_long)  // whose length a window goes by
    written.first = sizes.write(job, {.is_first = true});
  written.steady = sizes.write(job, {.iterations = whole_periods(scenario, shown_iterations(scenario)) + 1});
  if (is_long) {
    written.window = window_length(scenario, written.first.plan.step_count());
    sizes.add_long_run(written.steady);
    sizes.add_window(written.steady, written.window);
  }
  if (strategy_of(scenario).is_asynchronous)
    sizes.add_events(expected_update_events(scenario));
  sizes.check();
  written.size = sizes.size();
  return written;
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

// Where one plan does not hold them.
void run_all_iterations(Simulation& simulation, const Scenario& scenario, std::int64_t window) {
  const Cluster& cluster = *simulation.cluster;
  if (is_long_run(scenario)) {
    simulation.long_run = run_windows(scenario, simulation.job, cluster, window);
    simulation.timed_out = simulation.long_run->timed_out;
  }
  if (strategy_of(scenario).is_asynchronous)
    simulation.updates = run_updates(scenario, simulation.job, cluster.topology);
}

}  // namespace

bool has_first_iteration(const Scenario& scenario) {
  return !scenario.training.layout.is_cut() && !scenario.program;
}

Simulation simulate(const Scenario& scenario, const SimulationOptions& options) {
  return with_file(scenario, [&] { return run_scenario(scenario, options); });
}

}  // namespace lockstep
