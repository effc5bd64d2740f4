#pragma once

// The kernels that an operator is, by who writes them.
//
// Problem:   an operator is one kernel of a library, several that its formula is made of, or a part of the kernel before
//            it; what is read and written differs by more than twice.
// Idea:      a layer says what one kernel of its own passes over, what eager ones pass over besides, what its formula
//            does and how much of it depends on its own place alone. The kernel style says which of these it is.
//            Where kernels are merged, a layer's go into the kernel before them, or after a library's product, into
//            which nobody writes, are one of their own.
// Invariant: an operator is counted once: as its formula, as merged into the kernel before it, or by itself.
// Reference: sim/plan/kernel_style.h; Megatron-LM, megatron/model/fused_softmax.py (softmax in fp32) and
//            core/fusions (a bias and GELU, a bias, dropout and sum, a gated activation: a kernel each); PyTorch,
//            torch/_inductor/kernel/mm.py (a product is a call of cuBLAS).

#include <cstdint>
#include <optional>

#include "sim/plan/model.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// Kernels that only move bytes.
struct MemoryPasses {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  bool is_of_library = false;  // launched within an operator, not as operators of their own
};

constexpr std::int64_t bytes_of_cast = 6;  // read in one precision, written in the other

// Whether queries and keys are turned as complex numbers, which kernels written by hand do not do.
bool turns_complex(const ComputeSpec& compute);

class OperatorKernels {
 public:
  explicit OperatorKernels(const Scenario& scenario);

  // Of a batch, weights left out.
  MemoryPasses forward(const Layer& layer) const;
  MemoryPasses backward(const Layer& layer) const;
  MemoryPasses bias_beside_product(const Layer& layer) const;
  // Of PyTorch's autocast, where it is that.
  MemoryPasses autocast(const AutocastWork& work) const;

  // Whether it is its formula's operators, one after another.
  bool is_formula(const Layer& layer) const { return formula_of(layer).has_value(); }

 private:
  // Of a sample, one way.
  struct Passed {
    std::int64_t kernels = 0;
    std::int64_t elements = 0;
  };

  bool is_merged(const Layer& layer) const;
  bool is_wide_softmax(const Layer& layer) const;
  std::optional<Composition> composition_of(const Layer& layer) const;
  bool composes(ComposedBy by) const;
  std::optional<Composition> formula_of(const Layer& layer) const;
  MemoryPasses made_of(const PrimitiveWork& primitives, ComposedBy by) const;
  bool is_left_out(bool is_view) const { return is_view && !runs_operators(style_); }
  Passed passed_forward(const Layer& layer) const;
  Passed passed_backward(const Layer& layer) const;
  MemoryPasses passes_of(const Passed& passed, const Layer& layer) const;
  std::int64_t loss_casts(const Layer& layer) const;
  std::int64_t kept_beside(const Layer& layer) const;

  std::int64_t batch_;
  std::int64_t element_bytes_;
  KernelStyle style_;
  bool composes_common_;  // norms and rotary embeddings: Megatron's modules have kernels for them
  bool composes_router_;
  bool composes_permutation_;
  bool fills_mask_in_place_;
  bool is_autocast_;
  bool converts_in_softmax_;
  bool turns_complex_;
};

}  // namespace lockstep
