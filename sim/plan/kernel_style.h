#pragma once

// Who writes the kernels: what they take, and what backward keeps, depend on it.

#include <cstdint>

namespace lockstep {

// eager: one for each operator, as a library has it; compiled: what depends on its own place alone goes into the
// kernel before it; fused: the same by hand, and one-pass optimizers.
enum class KernelStyle : std::uint8_t { eager, compiled, fused };

}  // namespace lockstep
