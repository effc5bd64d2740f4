#include "sim/run/fp8_scaling.h"

#include <variant>

#include "sim/base/units.h"

namespace lockstep {
namespace {

constexpr std::int64_t half_bytes = 2;
constexpr std::int64_t written_bytes = 1 + 1;  // an element in fp8 along both dimensions

// How often an operand is read: by each pass.
std::int64_t passes_of(Fp8Recipe recipe) {
  return recipe == Fp8Recipe::delayed ? 1 : 2;
}

}  // namespace

Precision multiplied_precision(const Layer& layer, Precision precision) {
  return precision == Precision::fp8 && !layer.is_product_of_block() ? Precision::bf16 : precision;
}

Fp8Scaling::Fp8Scaling(const Scenario& scenario)
    : batch_(scenario.model.batch_per_gpu),
      precision_(scenario.model.precision),
      passes_(passes_of(scenario.compute.fp8_recipe)),
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
  return {.count = (reads_same_input ? 0 : passes_) + passes_ / weight_uses_,
          .bytes = (input + divided_up(layer.weight_elements, weight_uses_)) * scaling_bytes()};
}

MemoryPasses Fp8Scaling::of_gradient(const Layer& layer) const {
  if (!is_scaled(layer))
    return {};
  const GemmShape& shape = std::get<GemmShape>(*layer.product);
  return {.count = passes_, .bytes = shape.batch * shape.m * shape.n * batch_ * scaling_bytes()};
}

std::int64_t Fp8Scaling::scaling_bytes() const {
  return passes_ * half_bytes + written_bytes;
}

}  // namespace lockstep
