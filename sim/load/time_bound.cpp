#include "sim/load/time_bound.h"

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "sim/compute/kernel_time.h"
#include "sim/compute/rank_variation.h"
#include "sim/load/bound_arithmetic.h"
#include "sim/load/message_bound.h"
#include "sim/load/work_bound.h"
#include "sim/run/describe_input.h"
#include "sim/run/host_issue.h"
#include "sim/run/model_stages.h"
#include "sim/training/schedules/pipeline_schedule.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

// ---- computing ----

bool is_depthwise(const Layer& layer) {
  const auto* shape = layer.product ? std::get_if<ConvolutionShape>(&*layer.product) : nullptr;
  return shape != nullptr && shape->is_depthwise();
}

// Depthwise convolutions run on the vector lanes, whatever the precision.
double lowest_peak(const GpuSpec& gpu, const ModelUse& use) {
  const FlopRate own = matmul_peak(gpu, use.precision);
  const std::vector<Layer>& layers = use.model.layers;
  const bool has_depthwise = std::any_of(layers.begin(), layers.end(), is_depthwise);
  return as_double((has_depthwise ? std::min(own, gpu.vector_peak) : own).count());
}

// The worst that any curve of this GPU says; without a curve 0.7, and thin products reach much less.
double lowest_efficiency(const GpuSpec& gpu) {
  double lowest = gpu.kernels ? 0.05 : 0.7;
  for (const auto& [precision, curve] : gpu.matmul_efficiency) {
    for (const EfficiencyPoint& point : curve) lowest = std::min(lowest, as_ratio(point.efficiency));
  }
  return lowest;
}

double seconds_of_kernel(const Scenario& scenario) {
  const GpuSpec& gpu = scenario.cluster.gpu;
  Duration start = gpu.kernel_launch;
  if (gpu.kernels)
    start += gpu.kernels->tensor.start + gpu.kernels->vector.start + gpu.kernels->attention.start +
             gpu.kernels->memory.start;
  return as_seconds(start + longest_issue(scenario).kernel);
}

// A rate at which all memory traffic goes at least.
double memory_rate(const GpuSpec& gpu) {
  return std::max(1.0, as_double(achieved_memory_bandwidth(gpu).count()));
}

double computing_seconds(const Scenario& scenario, const Work& work) {
  const GpuSpec& gpu = scenario.cluster.gpu;
  const double rate = std::max(1.0, lowest_peak(gpu, scenario.model) * lowest_efficiency(gpu));
  return work.stated_seconds + work.flops / rate + work.bytes / memory_rate(gpu) +
         work.kernels * seconds_of_kernel(scenario);
}

double optimizer_seconds(const Scenario& scenario, const Model& model) {
  constexpr double most_passes = 64;   // over weights, gradients and states
  constexpr double most_kernels = 24;  // of a tensor
  const double bytes = most_passes * widest_element * element_count(model);
  return bytes / memory_rate(scenario.cluster.gpu) +
         most_kernels * as_count(model.parameters.size()) * seconds_of_kernel(scenario) +
         as_seconds(longest_issue(scenario).step);
}

// What one batch takes from storage to the device, one step after another.
double input_seconds(const Scenario& scenario) {
  if (!scenario.input)
    return 0;
  const InputWork work = describe_input(scenario);
  return as_double(scenario.training.gradient_accumulation) *
         as_seconds(work.reading + work.preparing + work.copying);
}

double straggling(const ClusterSpec& cluster) {
  double slowest = 1;
  for (const Straggler& found : cluster.stragglers) slowest = std::max(slowest, as_ratio(found.slowdown));
  constexpr double largest_factor = 40;  // of a lognormal with coefficient of variation 1: e^(0.83 * 4.3)
  return cluster.jitter.distribution == JitterDistribution::none ? slowest : slowest * largest_factor;
}

double slowdown(const Scenario& scenario) {
  const Calibration& calibration = scenario.cluster.calibration;
  constexpr double by_bound = 20;  // half of the SMs, and waves that lose sixteen times their share
  const double measured = as_ratio(calibration.compute_slowdown.value_or(Ratio::one()) +
                                   calibration.sm_interference.value_or(Ratio{}));
  const double by_neighbours = std::max(measured, by_bound);
  const double stated = as_ratio(scenario.compute.slowdown_during_communication.value_or(Ratio::one()));
  constexpr double most_deviations = 6;  // the slowest of a million normal draws is under that
  const double slowest_rank =
      1 + most_deviations * as_ratio(calibration.rank_variation.value_or(most_published_deviation));
  return std::max(by_neighbours, stated) * slowest_rank * straggling(scenario.cluster) *
         std::max(1.0, as_ratio(scenario.compute.scale)) *
         std::max(1.0, as_ratio(scenario.compute.device_scale));
}

// ---- the passes ----

bool runs_again(const Layer& layer, const Recompute& recompute) {
  const bool is_fused = layer.product && std::holds_alternative<AttentionShape>(*layer.product);
  switch (recompute.kind) {
    case RecomputeKind::none:
      return false;
    case RecomputeKind::selective:
      return layer.block >= 0 && layer.kind != LayerKind::matmul;
    case RecomputeKind::selective_op:
      return layer.block >= 0 && !is_fused;
    case RecomputeKind::full:
    case RecomputeKind::every:
      return layer.block >= 0;
    case RecomputeKind::one_in:
      return layer.block >= 0 && layer.block % recompute.blocks == recompute.blocks - 1;
  }
  return false;
}

// What one micro-batch takes of one part of the model.
struct Part {
  double computing = 0;
  double exchanging = 0;  // with those that the layers are cut among, and the next parts
  double layers = 0;
  double parameters = 0;
  double elements = 0;
};

class IterationBound {
 public:
  explicit IterationBound(const Scenario& scenario)
      : scenario_(scenario),
        layout_(scenario.training.layout),
        messages_(scenario),
        issue_(longest_issue(scenario)),
        slowdown_(slowdown(scenario)) {
    if (layout_.is_cut())
      cut_ = parallel_model(scenario.model.model, layout_.degrees);
    if (layout_.pipeline == 1)
      parts_.push_back(part_of({0, model().layers.size()}));
    else
      for (std::int64_t copy = 0; copy < copies(); ++copy)
        for (const LayerRange& range : parts_of(model(), layout_)) parts_.push_back(part_of(range));
  }

  double whole() const {
    return computing() + passes([](const Part& part) { return part.exchanging; }) + synchronising() + once() +
           input_seconds(scenario_);
  }

 private:
  double micro_batches() const { return as_double(scenario_.training.gradient_accumulation); }
  const Model& model() const { return cut_ ? cut_->model : scenario_.model.model; }
  std::int64_t copies() const {
    return layout_.pipeline == 1 ? 1 : pipeline_schedule_named(layout_.schedule).copies;
  }

  // All of them one after another, or what the stages of a pipeline run beside each other.
  template <class Seconds>
  double passes(const Seconds& seconds) const {
    double all = 0;
    double longest = 0;
    for (const Part& part : parts_) {
      all += seconds(part);
      longest = std::max(longest, seconds(part));
    }
    if (layout_.pipeline == 1)
      return micro_batches() * all;
    const double in_turn = as_double(layout_.chunks) * (micro_batches() + 2 * as_double(layout_.pipeline));
    return std::min(micro_batches() * all, in_turn * longest);
  }

  // A measured step is of all micro-batches, and no rank has more of it.
  double computing() const {
    if (scenario_.compute.single_gpu_iteration)
      return slowdown_ * as_seconds(*scenario_.compute.single_gpu_iteration);
    if (scenario_.model.measured) {
      const MeasuredModel& measured = *scenario_.model.measured;
      return slowdown_ * (micro_batches() * as_seconds(measured.forward + measured.backward) +
                          as_seconds(measured.optimizer));
    }
    return slowdown_ *
           (passes([](const Part& part) { return part.computing; }) + optimizer_seconds(scenario_, model()));
  }

  Part part_of(const LayerRange& range) const {
    constexpr double most_passes = 3;  // forward, backward by data and by weights
    Part part;
    Work work;
    for (std::size_t layer = range.first; layer < range.last; ++layer) {
      const double forwards = runs_again(model().layers[layer], scenario_.training.recompute) ? 2 : 1;
      work += work_bound(scenario_.model, model(), layer, forwards);
      add_shared_weights(model().layers[layer], work);
      part.exchanging += exchange_seconds(layer, forwards);
    }
    if (layout_.pipeline > 1)
      part.exchanging += handing_on_seconds(range);
    part.computing = computing_seconds(scenario_, work) + most_passes * as_seconds(issue_.pass);
    part.layers = as_count(range.last - range.first);
    part.parameters = work.parameters;
    part.elements = work.elements;
    return part;
  }

  // A stage that multiplies by another's weights holds them as well.
  void add_shared_weights(const Layer& layer, Work& work) const {
    if (layout_.pipeline == 1 || !layer.product || !layer.parameters.empty() || layer.block >= 0)
      return;
    work.parameters += 1;
    work.elements += as_double(layer.weight_elements);
  }

  double exchange_seconds(std::size_t layer, double forwards) const {
    if (!cut_)
      return 0;
    const LayerExchanges& exchanges = cut_->exchanges[layer];
    double seconds = 0;
    for (const auto* list : {&exchanges.before_forward, &exchanges.after_forward})
      seconds += forwards * seconds_of_exchanges(*list);
    for (const auto* list :
         {&exchanges.before_backward, &exchanges.after_backward_input, &exchanges.after_backward})
      seconds += seconds_of_exchanges(*list);
    return seconds;
  }

  // An all-reduce moves everything twice; the host issues it like a kernel.
  double seconds_of_exchanges(const std::vector<Exchange>& exchanges) const {
    constexpr double element_bytes = 4;
    double seconds = 0;
    for (const Exchange& exchange : exchanges)
      seconds += as_seconds(issue_.kernel) +
                 messages_.seconds_of({.collectives = 1,
                                       .bytes = 2 * element_bytes * batch() * as_double(exchange.elements),
                                       .ranks = as_double(degree_of(layout_.degrees, exchange.axis))});
    return seconds;
  }

  // The output of a part, and the gradient of its input.
  double handing_on_seconds(const LayerRange& range) const {
    constexpr double element_bytes = 4;
    const double before = range.first > 0 ? handed_on({0, range.first}) : 0;
    constexpr double messages = 4;  // sent and received, each way
    return messages * as_seconds(issue_.kernel) +
           messages_.seconds_of(
               {.between_pairs = 2, .bytes = element_bytes * batch() * (handed_on(range) + before)});
  }
  double handed_on(const LayerRange& range) const {
    return as_double(elements_handed_on(*cut_, range, layout_.degrees));
  }
  double batch() const { return as_double(scenario_.model.batch_per_gpu); }

  // ---- what the strategy sends ----

  // All stages' messages one after another, or those of each micro-batch as its passes are.
  double synchronising() const {
    const auto at_most = strategy_named(scenario_.training.strategy).sends.at_most;
    if (at_most == nullptr)
      return 0;
    double all = 0;
    for (const Part& part : parts_) all += seconds_of_strategy(part, scenario_.training);
    TrainingSpec one = scenario_.training;
    one.gradient_accumulation = 1;
    return std::min(all, passes([&](const Part& part) { return seconds_of_strategy(part, one); }));
  }

  // Of a model that is measured all tensors stand alone.
  double seconds_of_strategy(const Part& part, const TrainingSpec& training) const {
    const bool has_layers = part.layers > 0;
    const double tensors = has_layers ? part.parameters : as_count(model().parameters.size());
    const double elements = has_layers ? part.elements : element_count(model());
    const double kinds = deals_experts(layout_) ? 2 : 1;  // experts are reduced apart
    const double ranks = as_double(scenario_.cluster.ranks());
    const TrafficBound traffic = strategy_named(training.strategy)
                                     .sends.at_most({.training = training,
                                                     .ranks = ranks,
                                                     .tensors = tensors,
                                                     .elements = elements,
                                                     .layers = has_layers ? part.layers : tensors});
    return 2 * tensors * as_seconds(scenario_.cluster.calibration.copy_per_tensor) +
           messages_.seconds_of({.collectives = kinds * traffic.collectives,
                                 .between_pairs = kinds * traffic.messages,
                                 .bytes = traffic.volume * widest_element * elements,
                                 .ranks = ranks});
  }

  // What a tensor group adds up at the end, and the weights that two stages share: one tensor's, or all of two copies;
  // and norms, of a tensor group and of all stages.
  double once() const {
    if (!cut_)
      return 0;
    double partial = 0;
    for (std::size_t parameter = 0; parameter < cut_->parameters.size(); ++parameter)
      if (cut_->parameters[parameter].is_partial)
        partial += as_double(model().parameters[parameter].elements);
    double tied = 0;
    for (const ParameterTensor& parameter : model().parameters)
      tied =
          copies() > 1 ? tied + as_double(parameter.elements) : std::max(tied, as_double(parameter.elements));
    const double norms = 1 + as_count(parts_.size());
    return messages_.seconds_of({.collectives = as_count(parts_.size()) + norms,
                                 .between_pairs = as_count(2 * parts_.size()),
                                 .bytes = widest_element * (2 * partial + 2 * tied),
                                 .ranks = as_double(layout_.degrees.tensor * layout_.pipeline)});
  }

  const Scenario& scenario_;
  const Layout& layout_;
  MessageBound messages_;
  LongestIssue issue_;
  double slowdown_;
  std::optional<ParallelModel> cut_;  // none: a rank has the whole model
  std::vector<Part> parts_;
};

}  // namespace

double longest_iteration(const Scenario& scenario) {
  return IterationBound(scenario).whole();
}

}  // namespace lockstep
