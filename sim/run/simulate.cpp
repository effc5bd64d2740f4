#include "sim/run/simulate.h"

#include <algorithm>
#include <utility>

#include "sim/run/describe_job.h"
#include "sim/run/folding.h"
#include "sim/run/host_issue.h"
#include "sim/run/plan_sizes.h"
#include "sim/run/rehearsal.h"
#include "sim/run/run_extent.h"
#include "sim/run/size_watch.h"

namespace lockstep {
namespace {

// The plans of a run, and the window of a long one: none runs before all are known to be small enough.
struct WrittenRun {
  WrittenPlan first;
  WrittenPlan steady;
  std::int64_t window = 1;
  RunSize size;
};

struct Rehearsals {
  std::vector<std::string> notes;
  double events = 0;  // of all of them
};

LentCluster find_cluster(const Scenario& scenario, const OtherCollectives& others, ClusterStore* clusters);
Rehearsals rehearse_within_limits(const Scenario& scenario, const Cluster& cluster, Job& job,
                                  const SimulationOptions& options);
WrittenRun write_run(const Scenario& scenario, const Job& job, const Cluster& cluster,
                     const SimulationOptions& options, double rehearsed_events);
void run_all_iterations(Simulation& simulation, const Scenario& scenario, std::int64_t window);

bool writes_first(const Scenario& scenario, const SimulationOptions& options) {
  return options.with_first && has_first_iteration(scenario);
}

Simulation run_scenario(const Scenario& scenario, const SimulationOptions& options) {
  Simulation simulation;
  simulation.job = describe_job(scenario);
  simulation.cluster = find_cluster(scenario, {}, options.clusters);
  Rehearsals rehearsals = rehearse_within_limits(scenario, *simulation.cluster, simulation.job, options);
  simulation.notes = std::move(rehearsals.notes);
  WrittenRun written = write_run(scenario, simulation.job, *simulation.cluster, options, rehearsals.events);
  const OtherCollectives others =
      other_collectives(scenario, simulation.cluster->groups, written.steady.iterations);
  if (!others.empty()) {
    LentCluster finer = find_cluster(scenario, others, options.clusters);
    if (finer->symmetry != simulation.cluster->symmetry) {
      written = {};
      simulation.cluster = std::move(finer);
      written = write_run(scenario, simulation.job, *simulation.cluster, options, rehearsals.events);
    }
  }
  const Cluster& cluster = *simulation.cluster;
  simulation.size = written.size;
  SizeWatch watch(scenario, simulation.size);
  if (writes_first(scenario, options))
    simulation.first = run_plan(std::move(written.first), scenario, simulation.job, cluster, &watch);
  simulation.steady = run_plan(std::move(written.steady), scenario, simulation.job, cluster, &watch);
  simulation.timed_out = end_at_timeout(simulation.steady, scenario);
  run_all_iterations(simulation, scenario, written.window);
  return simulation;
}

LentCluster find_cluster(const Scenario& scenario, const OtherCollectives& others, ClusterStore* clusters) {
  return clusters != nullptr ? clusters->lend(scenario, others)
                             : LentCluster(build_cluster(scenario, others).release());
}

Rehearsals rehearse_within_limits(const Scenario& scenario, const Cluster& cluster, Job& job,
                                  const SimulationOptions& options) {
  Rehearsals rehearsals;
  const double times = 1.0 + options.computing_ends;
  rehearsals.notes = rehearse(job, scenario.cluster.ranks(), [&](const Job& tried) {
    PlanSizes sizes(scenario, cluster);
    WrittenPlan written = sizes.write(tried, {.iterations = 2}, lockstep::rehearsals(scenario) * times);
    sizes.check();
    RunSize size = sizes.size();
    SizeWatch watch(scenario, size);
    Run run = run_plan(std::move(written), scenario, tried, cluster, &watch);
    rehearsals.events += static_cast<double>(run.timeline.events);
    return run;
  });
  if (!cluster.world.mesh_cycles.are_most)
    rehearsals.notes.push_back("rings: " + describe(cluster.world.mesh_cycles));
  return rehearsals;
}

WrittenRun write_run(const Scenario& scenario, const Job& job, const Cluster& cluster,
                     const SimulationOptions& options, double rehearsed_events) {
  PlanSizes sizes(scenario, cluster);
  const bool is_long = is_long_run(scenario);
  const bool is_asynchronous = strategy_of(scenario).is_asynchronous;  // its plan is of one worker, once
  const double host_ends = waits_for_host(job) ? options.host_ends : 0;
  const double ends = options.computing_ends + host_ends + options.message_ends;
  WrittenRun written;
  if (writes_first(scenario, options) || is_long)  // whose length a window goes by
    written.first = sizes.write(job, {.is_first = true});
  written.steady = sizes.write(job, {.iterations = whole_periods(scenario, shown_iterations(scenario)) + 1},
                               1 + (is_asynchronous ? 0 : ends));
  sizes.add_report(written.steady);
  if (is_long) {
    written.window = window_length(scenario, written.first.plan.step_count());
    sizes.add_long_run(written.steady);
    sizes.add_window(written.steady, written.window);
  }
  sizes.add_rehearsed(rehearsed_events * (1 + options.computing_ends));
  if (is_asynchronous)
    sizes.add_events(expected_update_events(scenario) * (1 + ends));
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
