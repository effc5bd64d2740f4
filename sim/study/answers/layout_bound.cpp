#include "sim/study/answers/layout_bound.h"

#include <algorithm>
#include <span>
#include <vector>

#include "sim/run/cluster.h"
#include "sim/run/describe_job.h"
#include "sim/run/pricing.h"
#include "sim/run/wires.h"
#include "sim/training/memory.h"
#include "sim/training/schedules/free_pipeline.h"
#include "sim/training/schedules/pipeline_schedule.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

class PassPricer {
 public:
  PassPricer(const Scenario& scenario, const Job& job)
      : pricing_(pricing_of(scenario, job)),
        scale_(single_gpu_scale(scenario, job)),
        degrees_(scenario.training.layout.degrees),
        inside_(wires_inside(scenario.cluster)),
        all_(all_wires(scenario.cluster)) {}

  PassTime price(const Job& job, const LayerRange& layers) const {
    PassTime time;
    PassTime waits;
    for (std::size_t index = layers.first; index < layers.last; ++index) {
      const LayerWork& layer = job.layers[index];
      time.forward += weigh(layer.forward);
      time.backward_input += weigh(layer.backward);
      for (const std::uint32_t again : layer.recomputed)
        time.backward_input += weigh(job.layers[again].forward);
      if (layer.backward_weights)
        time.backward_weights += weigh(*layer.backward_weights);
      const LayerExchangeWork& exchanges = layer.exchanges;
      waits.forward += waiting(exchanges.before_forward) + waiting(exchanges.after_forward);
      waits.backward_input += waiting(exchanges.before_backward) + waiting(exchanges.after_backward_input) +
                              waiting(exchanges.after_backward);
    }
    return {whole(time.forward) + waits.forward, whole(time.backward_input) + waits.backward_input,
            whole(time.backward_weights)};
  }

  // Of a rank that has so many others to share it with.
  Duration optimizer(const Job& job, std::int64_t parts) const {
    return whole(scaled(weigh(job.optimizer), 1, parts));
  }

 private:
  Duration weigh(const KernelWork& work) const { return scale_.weigh(work_time(pricing_, work)); }

  // Prices are rounded along their running sum, so that a pass may come to a picosecond less.
  Duration whole(Duration weighed) const {
    constexpr Duration rounding = Duration::picoseconds(1);
    return std::max(scaled(weighed, scale_.whole), rounding) - rounding;
  }

  // What each rank must receive of the others, or send them; a reduction inside a switch sends no more.
  Duration waiting(const std::vector<ExchangeWork>& exchanges) const {
    Duration waited;
    for (const ExchangeWork& work : exchanges) {
      const std::int64_t ranks = degree_of(degrees_, work.axis);
      const bool is_whole = work.op == CollectiveOp::all_gather || work.op == CollectiveOp::reduce_scatter ||
                            work.op == CollectiveOp::all_reduce;
      const bool is_inside = work.axis == ParallelAxis::tensor || work.axis == ParallelAxis::expert_tensor;
      const Bandwidth wires = is_inside ? inside_ : all_;
      if (is_whole && !work.is_beside_kernel && ranks > 1 && wires > Bandwidth{0})
        waited += time_to_move(Bytes{work.bytes.count() / ranks * (ranks - 1)}, wires);
    }
    return waited;
  }

  Pricing pricing_;
  WorkScale scale_;
  ParallelDegrees degrees_;
  Bandwidth inside_;
  Bandwidth all_;
};

bool may_take_less_than_priced(const Scenario& scenario) {
  const bool has_lengths = scenario.input && scenario.input->lengths;
  const auto is_faster = [](const Straggler& straggler) { return straggler.slowdown < Ratio::one(); };
  const std::vector<Straggler>& stragglers = scenario.cluster.stragglers;
  return has_jitter(scenario) || has_lengths || strategy_of(scenario).is_asynchronous ||
         std::any_of(stragglers.begin(), stragglers.end(), is_faster);
}

PipelineShape shape_of(const Scenario& scenario) {
  const Layout& layout = scenario.training.layout;
  return {.stages = layout.pipeline,
          .chunks = layout.chunks,
          .micro_batches = scenario.training.gradient_accumulation};
}

// Ranks that update between them what all of them hold; none: servers do.
Duration least_optimizer(const Scenario& scenario, const Job& job, const PassPricer& pricer) {
  const std::int64_t parts = memory_shares(job, scenario.synchronised_ranks()).states;
  return parts == 0 ? Duration::zero() : pricer.optimizer(job, parts);
}

Duration time_of_pipeline(const Scenario& scenario, const Job& job, const PassPricer& pricer) {
  std::vector<std::vector<PassTime>> times(job.stages.size());
  for (std::size_t stage = 0; stage < times.size(); ++stage)
    for (const LayerRange& chunk : job.stages[stage].stage->chunks)
      times[stage].push_back(pricer.price(job.stages[stage], chunk));
  const std::vector<FreeSpan> spans =
      run_freely(pipeline_schedule_named(scenario.training.layout.schedule), shape_of(scenario), times);
  Duration least = spans.front().end + least_optimizer(scenario, job.stages.front(), pricer);
  for (std::size_t stage = 1; stage < job.stages.size(); ++stage)
    least = std::max(least, spans[stage].busy + least_optimizer(scenario, job.stages[stage], pricer));
  return least;
}

Duration least_time(const Scenario& scenario, const Job& job) {
  if (may_take_less_than_priced(scenario))
    return Duration::zero();
  const PassPricer pricer(scenario, job);
  if (!job.stages.empty())
    return time_of_pipeline(scenario, job, pricer);
  const PassTime time = pricer.price(job, {0, job.layers.size()});
  return (time.of(PassKind::forward) + time.of(PassKind::backward)) *
             scenario.training.gradient_accumulation +
         least_optimizer(scenario, job, pricer);
}

Bytes kept_by(const Job& job, const LayerRange& layers) {
  Bytes kept;
  for (std::size_t index = layers.first; index < layers.last; ++index) kept += job.layers[index].kept;
  return kept;
}

Bytes standing_with(const Scenario& scenario, const Job& job, Bytes activations) {
  MemoryUse use = standing_memory(
      {.job = job, .world = Communicator(), .ranks = scenario.synchronised_ranks(), .half_copies = {}});
  use.activations += activations;
  return with_allowance(use).total();
}

Bytes least_memory_of_stage(const Scenario& scenario, const Job& stage, std::int64_t number) {
  const PipelineSchedule& schedule = pipeline_schedule_named(scenario.training.layout.schedule);
  const std::vector<Pass> passes = schedule.passes(shape_of(scenario), number);
  std::vector<KeptActivations> kept;
  for (const LayerRange& chunk : stage.stage->chunks)
    kept.push_back({.by_forward = kept_by(stage, chunk), .for_weights = {}});
  return standing_with(scenario, stage, most_kept(passes, kept));
}

Bytes least_memory(const Scenario& scenario, const Job& job) {
  if (job.stages.empty())
    return standing_with(scenario, job, kept_by(job, {0, job.layers.size()}));
  Bytes most;
  for (std::size_t stage = 0; stage < job.stages.size(); ++stage)
    most =
        std::max(most, least_memory_of_stage(scenario, job.stages[stage], static_cast<std::int64_t>(stage)));
  return most;
}

// What a job says of a micro-batch is the same of each; where a measured step has all of them, they are part
// of what its kernels are scaled by. A pipeline's schedule goes by how many there are.
Scenario with_one_micro_batch(Scenario scenario) {
  if (!scenario.compute.single_gpu_iteration && scenario.training.layout.pipeline == 1)
    scenario.training.gradient_accumulation = 1;
  return scenario;
}

}  // namespace

LayoutBound bound_layout(const Scenario& scenario) {
  const Job job = describe_work(with_one_micro_batch(scenario));
  return {.iteration = least_time(scenario, job), .memory = least_memory(scenario, job)};
}

}  // namespace lockstep
