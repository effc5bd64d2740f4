#pragma once

// Who writes the kernels.
//
// Problem:   the same layers take other times and keep other tensors when a library, a compiler or hand-written code
//            runs them; pricing and memory must mean the same by it.
// Idea:      three styles, named once; whoever prices or counts says what a style means for that.

#include <cstdint>

namespace lockstep {

// eager: one for each operator, as a library has it; compiled: what depends on its own place alone goes into the
// kernel before it; fused: the same by hand, and one-pass optimizers.
enum class KernelStyle : std::uint8_t { eager, compiled, fused };

// Who writes the modules that call them, and how much their host has to do beside each kernel.
enum class ModuleStyle : std::uint8_t { torch, megatron };

}  // namespace lockstep
