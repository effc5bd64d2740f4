#include "sim/run/gradient_sum.h"

#include "sim/plan/precision.h"
#include "sim/run/cluster.h"
#include "sim/run/operator_kernels.h"
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
  if (!sums_apart(training) || !sums_gradients(scenario))
    return gradient;
  if (strategy_of(scenario).partition == Partition::nothing)
    return training.accumulate_allreduce_grads_in_fp32 ? wide : gradient;
  return parameter_bytes(training.zero.communication_data_type);
}

// One reads the sum and the gradient, and writes the sum; DeepSpeed casts the gradient before.
void add_kernels(std::int64_t gradient, GradientSum& sum) {
  const bool is_cast = sum.is_beside_gradients;
  sum.kernels = is_cast ? 2 : 1;
  sum.bytes_by_kernels = is_cast ? bytes_of_cast + 3 * sum.width : 2 * sum.width + gradient;
}

}  // namespace

GradientSum gradient_sum(const Scenario& scenario) {
  const Precision precision = scenario.model.precision;
  const std::int64_t gradient = parameter_bytes(precision);
  GradientSum sum{.width = width_of_sum(scenario, gradient),
                  .micro_batches = scenario.training.gradient_accumulation,
                  .is_fused = scenario.compute.gradient_accumulation_fusion};
  if (!sums_gradients(scenario))
    return sum;
  const bool is_megatron = runs_megatron(scenario.training.framework);
  sum.is_beside_gradients = sum.width > gradient && !is_megatron;
  sum.additions = sum.micro_batches - (is_megatron || sum.is_beside_gradients ? 0 : 1);
  sum.bytes_by_product = 2 * sum.width - activation_bytes(precision);
  add_kernels(gradient, sum);
  return sum;
}

}  // namespace lockstep
