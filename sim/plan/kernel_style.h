#pragma once

// Who writes the kernels.
//
// Problem:   the same layers take other times and keep other tensors when a library, a compiler or hand-written code
//            runs them; pricing and memory must mean the same by it.
// Idea:      four styles, named once; whoever prices or counts says what a style means for that.

#include <cstdint>

namespace lockstep {

// eager: one for each operator, as a library has it; compiled: what depends on its own place alone goes into the
// kernel before it, unless that is a library's product; fused: some of that by hand, and one-pass optimizers; primitives: as eager, where norms, GELU, dropout
// and biases are formulas of several kernels each (TensorFlow without XLA).
enum class KernelStyle : std::uint8_t { eager, compiled, fused, primitives };

// Whether operators stay apart.
constexpr bool runs_operators(KernelStyle style) {
  return style == KernelStyle::eager || style == KernelStyle::primitives;
}

// Who updates the weights. foreach: operator by operator, over lists of tensors; fused: one kernel over such lists;
// for_loop: operator by operator, tensor by tensor, in place; per_tensor: one kernel for each tensor; primitives: the
// formula for each tensor, whose results are assigned.
enum class OptimizerKernels : std::uint8_t { foreach, fused, for_loop, per_tensor, primitives };

// Over lists of tensors, which are launched together.
constexpr bool walks_lists(OptimizerKernels kernels) {
  return kernels == OptimizerKernels::foreach || kernels == OptimizerKernels::fused;
}

// Who writes the modules that call them, and how much their host has to do beside each kernel.
enum class ModuleStyle : std::uint8_t { torch, megatron, megatron_core };

// What is captured as a CUDA graph, which the host launches at once instead of kernel by kernel. layer: forward and
// backward of each block (Megatron-LM's --cuda-graph-impl local or transformer_engine), up to where tokens go to
// experts; full_iteration: all passes of a step together.
enum class CudaGraphScope : std::uint8_t { none, layer, full_iteration };

}  // namespace lockstep
