#include "sim/run/fp8_scaling.h"

#include <variant>

#include "sim/base/units.h"

namespace lockstep {
namespace {

constexpr std::int64_t scaling_bytes = 2 + 2 + 1 + 1;  // an element in half precision twice, in fp8 twice
constexpr std::int64_t scaling_passes = 2;

}  // namespace

Precision multiplied_precision(const Layer& layer, Precision precision) {
  const bool is_linear = layer.product && std::holds_alternative<GemmShape>(*layer.product);
  const bool is_of_block = layer.block >= 0 && layer.weight_elements > 0 && is_linear;
  return precision == Precision::fp8 && !is_of_block ? Precision::bf16 : precision;
}

Fp8Scaling::Fp8Scaling(const Scenario& scenario)
    : batch_(scenario.model.batch_per_gpu),
      precision_(scenario.model.precision),
      weight_uses_(scenario.compute.kernels == KernelStyle::fused ? scenario.training.gradient_accumulation
                                                                  : 1) {}

bool Fp8Scaling::is_scaled(const Layer& layer) const {
  return multiplied_precision(layer, precision_) == Precision::fp8;
}

MemoryPasses Fp8Scaling::of_operands(const Layer& layer, bool reads_same_input) const {
  if (!is_scaled(layer))
    return {};
  const GemmShape& shape = std::get<GemmShape>(*layer.product);
  const std::int64_t input = reads_same_input ? 0 : shape.batch * shape.m * shape.k * batch_;
  return {.count = (reads_same_input ? 1 : 2) * scaling_passes,
          .bytes = (input + divided_up(layer.weight_elements, weight_uses_)) * scaling_bytes};
}

MemoryPasses Fp8Scaling::of_gradient(const Layer& layer) const {
  if (!is_scaled(layer))
    return {};
  const GemmShape& shape = std::get<GemmShape>(*layer.product);
  return {.count = scaling_passes, .bytes = shape.batch * shape.m * shape.n * batch_ * scaling_bytes};
}

}  // namespace lockstep
