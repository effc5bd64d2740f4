#include "sim/run/gradient_sum.h"

#include "sim/plan/precision.h"
#include "sim/training/megatron.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

constexpr std::int64_t wide = 4;

// Gradients of whole weights are added up over micro-batches, but where they are reduced after each.
bool sums_gradients(const Scenario& scenario) {
  return strategy_of(scenario).partition < Partition::gradients;
}

// Megatron-LM's distributed optimizer adds up in what it reduces, others' where autograd leaves them.
std::int64_t width_of_sum(const Scenario& scenario, std::int64_t gradient) {
  const TrainingSpec& training = scenario.training;
  if (strategy_of(scenario).partition == Partition::nothing)
    return training.accumulate_allreduce_grads_in_fp32 ? wide : gradient;
  return runs_megatron(training.framework) ? parameter_bytes(training.zero.communication_data_type)
                                           : gradient;
}

std::int64_t bytes_of_addition(const Scenario& scenario, std::int64_t sum, std::int64_t gradient) {
  return scenario.compute.gradient_accumulation_fusion ? 2 * sum - gradient : 2 * sum + gradient;
}

}  // namespace

GradientSum gradient_sum(const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  const std::int64_t gradient = parameter_bytes(scenario.model.precision);
  const std::int64_t sum = width_of_sum(scenario, gradient);
  const bool has_buffer = runs_megatron(training.framework) || sum > gradient;
  GradientSum found{.width = sum,
                    .micro_batches = training.gradient_accumulation,
                    .is_fused = scenario.compute.gradient_accumulation_fusion};
  if (!sums_gradients(scenario))
    return found;
  found.additions = found.micro_batches - (has_buffer ? 0 : 1);
  found.element_bytes = bytes_of_addition(scenario, sum, gradient);
  return found;
}

}  // namespace lockstep
