#include "sim/run/single_gpu.h"

#include <algorithm>

#include "sim/run/describe_input.h"
#include "sim/run/describe_job.h"
#include "sim/run/host_issue.h"

namespace lockstep {
namespace {

// What a compute lane spends on the model's optimizer in a mean measured iteration; the update loop of
// asynchronous workers has no plan, and there it is the workers' unless servers update the weights.
Duration updating_of_rank(const Scenario& scenario, const Simulation& simulation, LaneId lane,
                          const WorkScale& scale, Duration whole) {
  if (strategy_of(scenario).is_asynchronous)
    return scenario.training.parameter_server.servers.updates_weights ? Duration::zero() : whole;
  const Run& run = simulation.steady;
  const Pricing pricing = pricing_of(scenario);
  Duration updating;
  for (const auto& [op, kernel] : run.plan.kernel_of)
    if (op >= run.iterations[1].first && op < run.iterations.back().last && run.plan.lane[op.index] == lane &&
        run.plan.kernels[kernel].is_model_work && section_of(run.plan, op).category == Category::optimizer)
      updating += scale.weigh(work_time(pricing, run.plan.kernels[kernel]));
  return Duration::picoseconds(updating.picoseconds() /
                               (static_cast<std::int64_t>(run.iterations.size()) - 1));
}

Duration single_gpu_time(const Scenario& scenario, const Job& job) {
  const WorkScale scale = single_gpu_scale(scenario, job);
  const Duration step = scaled(weighed_step(scenario, job, scale), scale.whole);
  const Duration waiting =
      has_host_in_it(scenario) ? Duration::zero() : waiting_for_host(scenario, job, scale);
  if (!scenario.input || !scenario.input->lengths)
    return step + waiting;
  // Batches are padded to a length of their own; the optimizer has nothing to do with it.
  const Duration optimizer = scaled(scale.weigh(work_time(pricing_of(scenario), job.optimizer)), scale.whole);
  return waiting + optimizer +
         scaled(step - optimizer, describe_lengths(scenario).mean_padded().parts_per_million(),
                (Ratio::one() * scenario.model.model.tokens_per_sample).parts_per_million());
}

}  // namespace

Duration single_gpu_time(const Scenario& scenario) {
  return single_gpu_time(scenario, describe_work(scenario));
}

Duration work_of_rank(const Scenario& scenario, const Simulation& simulation, LaneId lane) {
  const WorkScale scale = single_gpu_scale(scenario, simulation.job);
  const Duration whole = scale.weigh(work_time(pricing_of(scenario), simulation.job.optimizer));
  // An update in pieces takes longer, and is no more work.
  const Duration own = std::min(whole, updating_of_rank(scenario, simulation, lane, scale, whole));
  return single_gpu_time(scenario, simulation.job) - scaled(whole, scale.whole) + scaled(own, scale.whole);
}

}  // namespace lockstep
