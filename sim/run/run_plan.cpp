#include "sim/run/run_plan.h"

#include <algorithm>
#include <utility>

#include "sim/engine/executor.h"
#include "sim/run/batch_stretch.h"
#include "sim/run/beside_communication.h"
#include "sim/run/disturbance.h"
#include "sim/run/pricing.h"

namespace lockstep {
namespace {

// Collectives of several algorithms at once, on links that folding found alike by their rings.
bool may_mix_algorithms(const Scenario& scenario, const Cluster& cluster) {
  const auto representatives = cluster.symmetry.roles.representatives.size();
  return scenario.simulation.fidelity == Fidelity::flow && cluster.groups.empty() &&
         scenario.communication.collectives_in_flight > 1 && representatives < cluster.topology.ranks();
}

void price_kernels(Run& run, const Scenario& scenario, const Job& job) {
  price(run.plan, scenario, job);
  if (scenario.input && scenario.input->lengths)
    stretch_by_length(run.plan, run.batches, scenario);
}

void disturb_kernels(Run& run, const Scenario& scenario, const Cluster& cluster) {
  if (const Jitter jitter = jitter_of(scenario); jitter.is_active())
    DisturbedWork(run.plan, run.iterations, cluster.topology.ranks()).apply(jitter, 0, run.plan);
}

}  // namespace

void price_again(Run& run, const Scenario& scenario, const Job& job, const Cluster& cluster) {
  price_kernels(run, scenario, job);
  disturb_kernels(run, scenario, cluster);
}

Run prepare(WrittenPlan written, const Scenario& scenario, const Job& job, const Cluster& cluster) {
  Run run;
  run.plan = std::move(written.plan);
  run.lanes = std::move(written.lanes);
  run.iterations = std::move(written.iterations);
  run.batches = std::move(written.batches);
  bind_kernels(run.plan, scenario, job);
  price_kernels(run, scenario, job);
  const bool is_mixed = may_mix_algorithms(scenario, cluster);
  const Symmetry split =
      is_mixed ? split_by_load(cluster.topology, cluster.symmetry, run.plan.traffics) : Symmetry{};
  run.routes = route_paths(
      {.plan = run.plan,
       .topology = cluster.topology,
       .world = cluster.world,
       .calibration = scenario.cluster.calibration,
       .symmetry = is_mixed ? split : cluster.symmetry,
       .interference = find_interference(scenario),
       .takes_core_time = !scenario.compute.slowdown_during_communication && !reduces_on_hosts(scenario),
       .library = is_mixed ? nullptr : &cluster.routes});
  return run;
}

Run run_plan(WrittenPlan written, const Scenario& scenario, const Job& job, const Cluster& cluster,
             SizeWatch* watch) {
  Run run = prepare(std::move(written), scenario, job, cluster);
  disturb_kernels(run, scenario, cluster);
  const auto capacities = cluster.topology.capacities();
  run.timeline = watch != nullptr ? watch->run(run.plan, capacities, run.routes)
                                  : lockstep::run(run.plan, capacities, run.routes);
  return run;
}

std::optional<TimedOut> end_at_timeout(Run& run, const Scenario& scenario) {
  if (!scenario.communication.timeout)
    return std::nullopt;
  for (std::size_t i = 0; i < run.iterations.size(); ++i) {
    auto timed_out = find_timeout(run.timeline, run.iterations[i], *scenario.communication.timeout);
    if (!timed_out)
      continue;
    timed_out->iteration = static_cast<std::int64_t>(i) + 1;
    MemoryChanges memory = std::move(run.iterations.back().memory);
    run.iterations.resize(std::max<std::size_t>(i, 2));
    run.iterations.back().memory = std::move(memory);
    return timed_out;
  }
  return std::nullopt;
}

}  // namespace lockstep
