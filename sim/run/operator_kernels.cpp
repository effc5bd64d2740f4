#include "sim/run/operator_kernels.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::int64_t wide_softmax_forward = 2 + 2;
constexpr std::int64_t wide_softmax_backward = 3 + 3 + 4;
constexpr std::int64_t wide_softmax_forward_kernels = 2;
constexpr std::int64_t wide_softmax_backward_kernels = 4;

// Merged into the kernel before it, a layer neither reads what that writes nor has it written.
std::int64_t without_pointwise(std::int64_t elements, const Layer& layer) {
  return std::max<std::int64_t>(elements - 2 * layer.pointwise_elements, 0);
}

// Cast to fp32, multiplied as complex numbers, cast back; the same backward. A compiler has no kernel for the product
// (pytorch/torchtitan issue 15: "does not support code generation for complex operators"), so nothing is merged with it.
Composition complex_rotary(std::int64_t elements) {
  const PrimitiveWork turned{
      .wide_elements = 2 * elements, .cast_elements = 2 * elements, .kernels = 1, .casts = 2};
  return {.forward = turned, .backward = turned};
}

}  // namespace

bool turns_complex(const ComputeSpec& compute) {
  return compute.rotary_embedding == RotaryEmbedding::complex_numbers &&
         (compute.kernels == KernelStyle::eager || compute.kernels == KernelStyle::compiled);
}

OperatorKernels::OperatorKernels(const Scenario& scenario)
    : batch_(scenario.model.batch_per_gpu),
      element_bytes_(activation_bytes(scenario.model.precision)),
      style_(scenario.compute.kernels),
      composes_common_(scenario.compute.modules == ModuleStyle::torch),
      composes_router_(!scenario.compute.moe_router_fusion),
      composes_permutation_(!scenario.compute.moe_permute_fusion),
      fills_mask_in_place_(!composes_common_ && element_bytes_ == 4),
      is_autocast_(scenario.compute.autocast && style_ == KernelStyle::eager &&
                   is_mixed(scenario.model.precision)),
      converts_in_softmax_(scenario.model.precision == Precision::amp_fp16),
      turns_complex_(turns_complex(scenario.compute)) {}

MemoryPasses OperatorKernels::forward(const Layer& layer) const {
  if (const std::optional<Composition> formula = formula_of(layer))
    return made_of(formula->forward, formula->by);
  return passes_of(passed_forward(layer), layer);
}

// Gradients that are added up stand beside the formula.
MemoryPasses OperatorKernels::backward(const Layer& layer) const {
  if (const std::optional<Composition> formula = formula_of(layer)) {
    MemoryPasses passes = made_of(formula->backward, formula->by);
    passes.count += layer.backward_passes;
    passes.bytes += layer.backward_pass_elements * element_bytes_ * batch_;
    return passes;
  }
  return passes_of(passed_backward(layer), layer);
}

MemoryPasses OperatorKernels::passes_of(const Passed& passed, const Layer& layer) const {
  return {.count = passed.kernels,
          .bytes = passed.elements * batch_ * element_bytes_ + loss_casts(layer) + kept_beside(layer)};
}

MemoryPasses OperatorKernels::bias_beside_product(const Layer& layer) const {
  const std::optional<Composition> composition = layer.product ? composition_of(layer) : std::nullopt;
  return composition ? made_of(composition->forward, composition->by) : MemoryPasses{};
}

// Autocast has what operators are made of in fp32, as what they read is.
MemoryPasses OperatorKernels::made_of(const PrimitiveWork& primitives, ComposedBy by) const {
  constexpr std::int64_t wide = 4;
  const std::int64_t bytes = is_autocast_ && by == ComposedBy::operators ? wide : element_bytes_;
  return {.count = primitives.launches(bytes), .bytes = primitives.bytes(bytes) * batch_};
}

// A softmax of fp16, but not of bf16, reads that and makes fp32 in one kernel (half_to_float of
// aten/src/ATen/native/cuda/SoftMax.cu): there is no cast, and what it reads, or writes in backward, is half as wide.
MemoryPasses OperatorKernels::autocast(const AutocastWork& work) const {
  constexpr std::int64_t wider = 2;
  if (!is_autocast_)
    return {};
  if (!converts_in_softmax_ || work.softmax_of_half == 0)
    return {.count = work.casts, .bytes = work.bytes * batch_};
  return {.count = work.casts - 1,
          .bytes = (work.bytes - work.softmax_of_half * (bytes_of_cast + wider)) * batch_};
}

bool OperatorKernels::is_merged(const Layer& layer) const {
  if (runs_operators(style_) || layer.pointwise_elements == 0 || is_wide_softmax(layer))
    return false;
  return style_ == KernelStyle::compiled ? layer.merged_by != MergedBy::nobody
                                         : layer.merged_by == MergedBy::everybody;
}

// Megatron's fused softmax takes half precision alone; otherwise the product has scaled the scores already, their
// mask is filled in where they lie (backward in a copy) and softmax follows (megatron/model/fused_softmax.py).
bool OperatorKernels::is_wide_softmax(const Layer& layer) const {
  return fills_mask_in_place_ && layer.softmax_elements > 0;
}

// Of primitives, where the framework has no kernel for the operator; none where it has.
std::optional<Composition> OperatorKernels::composition_of(const Layer& layer) const {
  if (layer.is_rotary && turns_complex_)
    return complex_rotary(layer.pointwise_elements);
  const bool is_formula = layer.composition && !is_wide_softmax(layer) && composes(layer.composition->by);
  return is_formula ? layer.composition : std::nullopt;
}

bool OperatorKernels::composes(ComposedBy by) const {
  if (by == ComposedBy::router)
    return composes_router_;
  if (by == ComposedBy::permutation)
    return composes_permutation_;
  return style_ == KernelStyle::primitives ||
         (by == ComposedBy::operators && composes_common_ && runs_operators(style_));
}

std::optional<Composition> OperatorKernels::formula_of(const Layer& layer) const {
  return layer.product ? std::nullopt : composition_of(layer);
}

OperatorKernels::Passed OperatorKernels::passed_forward(const Layer& layer) const {
  if (is_wide_softmax(layer))
    return {.kernels = wide_softmax_forward_kernels,
            .elements = wide_softmax_forward * layer.softmax_elements};
  if (is_left_out(layer.is_view_forward))
    return {};
  if (is_merged(layer))
    return {.elements = without_pointwise(layer.forward_elements, layer)};
  Passed passed{.kernels = layer.forward_kernels, .elements = layer.forward_elements};
  if (runs_operators(style_)) {
    passed.kernels += layer.eager_forward_kernels;
    passed.elements += layer.eager_forward_elements;
  }
  return passed;
}

// Gradients of what several layers read are added up: by autograd in a kernel, by a compiler where the last of them is
// made, which reads what there is already.
OperatorKernels::Passed OperatorKernels::passed_backward(const Layer& layer) const {
  constexpr std::int64_t passes_of_sum = 3;
  if (is_wide_softmax(layer))
    return {.kernels = wide_softmax_backward_kernels,
            .elements = wide_softmax_backward * layer.softmax_elements};
  if (is_left_out(layer.is_view_backward))
    return {};
  if (is_merged(layer))
    return {.elements = without_pointwise(layer.backward_elements, layer)};
  Passed passed{.kernels = layer.backward_kernels, .elements = layer.backward_elements};
  if (runs_operators(style_)) {
    passed.kernels += layer.eager_backward_kernels;
    passed.elements += layer.eager_backward_elements;
  } else if (style_ == KernelStyle::compiled && layer.merged_by == MergedBy::nobody) {
    passed.kernels -= layer.backward_passes;
    passed.elements -= layer.backward_pass_elements - layer.backward_pass_elements / passes_of_sum;
  }
  return passed;
}

// A loss is taken in fp32: its logits are cast there, their gradient back; what is counted in elements is
// moved twice as wide.
std::int64_t OperatorKernels::loss_casts(const Layer& layer) const {
  constexpr std::int64_t wide = 4;
  if (!layer.is_loss || element_bytes_ == wide)
    return 0;
  const std::int64_t casting = runs_operators(style_) ? layer.saved_elements * bytes_of_cast : 0;
  return batch_ * (casting + layer.forward_elements * (wide - element_bytes_));
}

// Masks and places, written by forward and read by backward; a compiler draws a mask again.
std::int64_t OperatorKernels::kept_beside(const Layer& layer) const {
  const bool is_drawn_again =
      is_merged(layer) || (style_ == KernelStyle::compiled && layer.pointwise_elements > 0);
  return is_drawn_again ? 0 : layer.saved_bytes * batch_;
}

}  // namespace lockstep
