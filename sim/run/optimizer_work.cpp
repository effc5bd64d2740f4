#include "sim/run/optimizer_work.h"

#include <algorithm>
#include <iterator>

#include "sim/base/units.h"
#include "sim/run/gradient_sum.h"
#include "sim/run/operator_kernels.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

// Bytes that a parameter, its gradient and the optimizer's states are read and written where all are fp32, and in how
// many kernels.
struct UpdateCost {
  std::int64_t bytes = 0;
  std::int64_t kernels = 1;
};

struct OptimizerCosts {
  UpdateCost one_pass;
  UpdateCost operators;  // in place; over lists they are launched by whole passes of the fused kernel's bytes
  UpdateCost primitives;  // each result is written, then assigned
};

// One pass: SGD reads weight and gradient and writes the weight; momentum and Adam move one and two states both ways;
// LAMB walks the update twice for its norms. Operators: momentum scales its buffer, adds the gradient, and adds that
// to the weight; Adam's eight (_single_tensor_adam), whose last LAMB takes apart: the ratio, the decay, two norms, and
// the sum. As a formula it is Adam's with two divisions for the bias and two norms.
OptimizerCosts costs_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::none:
      return {};
    case Optimizer::sgd:
      return {.one_pass = {12}, .operators = {12, 1}, .primitives = {20, 2}};
    case Optimizer::momentum:
      return {.one_pass = {20}, .operators = {32, 3}, .primitives = {56, 6}};
    case Optimizer::adam:
    case Optimizer::adamw:
      return {.one_pass = {28}, .operators = {80, 8}, .primitives = {156, 17}};
    case Optimizer::lamb:
      return {.one_pass = {44}, .operators = {108, 12}, .primitives = {196, 23}};
  }
  return {};
}

// One launch updates about this many tensors (PyTorch's multi-tensor apply).
constexpr std::int64_t tensors_per_launch = 48;

UpdateCost cost_of(const OptimizerCosts& costs, OptimizerKernels kernels) {
  switch (kernels) {
    case OptimizerKernels::foreach:
      return {.bytes = costs.operators.bytes,
              .kernels = std::max<std::int64_t>(costs.operators.bytes / costs.one_pass.bytes, 1)};
    case OptimizerKernels::for_loop:
      return costs.operators;
    case OptimizerKernels::primitives:
      return costs.primitives;
    case OptimizerKernels::fused:
    case OptimizerKernels::per_tensor:
      break;
  }
  return costs.one_pass;
}

// GradScaler divides every gradient by the scale and looks for infinities; so do Megatron-LM and DeepSpeed with what they
// have cast to fp32, DeepSpeed within what clips.
std::int64_t unscaling_bytes(const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  const bool has_scale = scenario.model.precision == Precision::amp_fp16 ||
                         (scenario.model.precision == Precision::fp16 && training.master_weights);
  const bool is_clipping = training.gradient_clipping && training.framework == "deepspeed";
  return has_scale && !is_clipping ? 8 : 0;
}

// What keeps fp32 copies in step: gradients that stand in half precision are cast for them, and they are cast back.
UpdateCost casting(const Job& job, const Scenario& scenario) {
  if (!job.training.master_weights)
    return {.kernels = 0};
  const bool casts_gradients = gradient_sum(scenario).width < updated_bytes(job);
  const std::int64_t kernels = casts_gradients ? 2 : 1;
  return {.bytes = kernels * bytes_of_cast, .kernels = kernels};
}

}  // namespace

KernelWork optimizer_work(const Model& model, const Job& job, const Scenario& scenario) {
  const Optimizer optimizer = scenario.training.optimizer;
  if (optimizer == Optimizer::none)
    return {.work_class = WorkClass::fixed, .duration = Duration::zero()};
  const OptimizerKernels kernels = scenario.compute.optimizer_kernels;
  const UpdateCost cost = cost_of(costs_of(optimizer), kernels);
  const Strategy& strategy = strategy_named(scenario.training.strategy);
  const std::int64_t tensors =
      strategy.updated_tensors == nullptr ? std::ssize(model.parameters) : strategy.updated_tensors(job);
  const std::int64_t lists = walks_lists(kernels) ? divided_up(tensors, tensors_per_launch) : tensors;
  const UpdateCost cast = casting(job, scenario);
  return {.work_class = WorkClass::optimizer,
          .bytes = parameter_count(model) *
                   (divided_up(cost.bytes * updated_bytes(job), 4) + unscaling_bytes(scenario) + cast.bytes),
          .launches = lists * (cost.kernels + cast.kernels)};
}

}  // namespace lockstep
