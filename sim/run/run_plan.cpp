#include "sim/run/run_plan.h"

#include <algorithm>
#include <utility>

#include "sim/engine/executor.h"
#include "sim/run/batch_stretch.h"
#include "sim/run/disturbance.h"
#include "sim/run/pricing.h"

namespace lockstep {
namespace {

// A stated slowdown stands for all that is known of the machine, and counts once.
Interference interference_of(const Scenario& scenario) {
  if (scenario.compute.slowdown_during_communication_ppm)
    return {.slowdown_ppm = *scenario.compute.slowdown_during_communication_ppm};
  const Calibration& calibration = scenario.cluster.calibration;
  return {.slowdown_ppm = calibration.compute_slowdown_ppm,
          .sm_interference_ppm = calibration.sm_interference_ppm,
          .sms = scenario.cluster.gpu.sms};
}

}  // namespace

Run prepare(WrittenPlan written, const Scenario& scenario, const Job& job, const Cluster& cluster) {
  Run run;
  run.plan = std::move(written.plan);
  run.lanes = std::move(written.lanes);
  run.iterations = std::move(written.iterations);
  price(run.plan, scenario, job);
  if (scenario.input && scenario.input->lengths)
    stretch_by_length(run.plan, written.batches, scenario);
  run.routes = route_paths(
      {.plan = run.plan,
       .topology = cluster.topology,
       .world = cluster.world,
       .calibration = scenario.cluster.calibration,
       .symmetry = cluster.symmetry,
       .interference = interference_of(scenario),
       .takes_core_time = !scenario.compute.slowdown_during_communication_ppm && !reduces_on_hosts(scenario),
       .library = &cluster.routes});
  return run;
}

Run run_plan(WrittenPlan written, const Scenario& scenario, const Job& job, const Cluster& cluster) {
  Run run = prepare(std::move(written), scenario, job, cluster);
  if (const Jitter jitter = jitter_of(scenario); jitter.is_active())
    DisturbedWork(run.plan, run.iterations, cluster.topology.ranks()).apply(jitter, 0, run.plan);
  run.timeline = lockstep::run(run.plan, cluster.topology.capacities(), run.routes);
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
    std::vector<MemoryChange> memory = std::move(run.iterations.back().memory);
    run.iterations.resize(std::max<std::size_t>(i, 2));
    run.iterations.back().memory = std::move(memory);
    return timed_out;
  }
  return std::nullopt;
}

}  // namespace lockstep
