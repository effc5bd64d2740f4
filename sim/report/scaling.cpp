#include "sim/report/scaling.h"

#include <algorithm>

#include "sim/base/quantity_text.h"
#include "sim/run/single_gpu.h"
#include "sim/training/memory.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

// The same step on a GPU of its own, in a quiet cluster.
Scenario on_one_gpu(const Scenario& scenario) {
  Scenario alone = scenario;
  alone.training.strategy = one_gpu_strategy();
  alone.training.layout = {};
  alone.training.layout.degrees.vocabulary_multiple = scenario.training.layout.degrees.vocabulary_multiple;
  alone.cluster.nodes = 1;
  alone.cluster.gpus_per_node = 1;
  alone.cluster.stragglers.clear();
  alone.cluster.slow_links.clear();
  alone.cluster.jitter = {};
  alone.cluster.faults.reset();
  alone.communication.timeout.reset();
  alone.communication.channels.reset();
  alone.simulation.iterations = 1;
  alone.simulation.fidelity = Fidelity::flow;
  return alone;
}

// Every micro-batch returns all that it takes: after the second nothing new is held.
Bytes peak_of_one_gpu(const Scenario& scenario) {
  Scenario alone = on_one_gpu(scenario);
  std::int64_t& micro_batches = alone.training.gradient_accumulation;
  micro_batches = std::min<std::int64_t>(micro_batches, 2);
  const Simulation simulation = simulate(alone, {.with_first = false});
  return find_memory_peak(simulation.steady, standing_memory(alone, simulation)).moment.use.total();
}

// Then no rank holds less than one GPU alone would.
bool divides_nothing(const ScaledRun& run) {
  const MemoryShares shares = memory_shares(run.simulation.job, run.scenario.synchronised_ranks());
  return !run.scenario.training.layout.is_cut() && shares.weights == 1 && shares.gradients == 1 &&
         shares.states == 1;
}

std::string reason_against(const ScaledRun& run) {
  if (run.iteration == Duration::zero())
    return "an iteration takes no time";
  if (run.scenario.program)
    return "a stated plan has no step of one GPU to compare with";
  const Bytes capacity = run.scenario.cluster.gpu.memory;
  if (divides_nothing(run) && run.peak <= capacity)
    return "";
  const Bytes needed = peak_of_one_gpu(run.scenario);
  return needed <= capacity ? ""
                            : "one GPU cannot hold the model: it would need " + format_bytes(needed) +
                                  " and has " + format_bytes(capacity);
}

}  // namespace

Scaling find_scaling(const ScaledRun& run) {
  if (std::string reason = reason_against(run); !reason.empty())
    return {.efficiency = std::nullopt, .reason = std::move(reason)};
  const Layout& layout = run.scenario.training.layout;
  const Duration work = layout.is_cut()
                            ? scaled(single_gpu_time(on_one_gpu(run.scenario)), 1, layout.ranks_of_a_copy())
                            : work_of_rank(run.scenario, run.simulation, run.lane);
  return {.efficiency = std::min(1.0, work.in_seconds() / run.iteration.in_seconds()), .reason = {}};
}

}  // namespace lockstep
