#pragma once

// How long a kernel takes on a GPU that nothing disturbs.
//
// Problem:   a scenario states a model and a GPU, rarely a time for each kernel.
// Idea:      products by their tiles (product_time.h), convolutions as products whose patches are no matrix in
//            memory, attention by its blocks of queries; everything else moves its bytes at what memory gives,
//            after a start. A processor whose constants nobody knows takes the longer of its FLOPs, at the share
//            of its peak that its profile states for so many, and of its bytes.
// Invariant: integers only; durations round up. A kernel that states its duration takes exactly that; more
//            FLOPs or bytes never take less, nor do more watts take more.
// Cost:      a microsecond a product, a few nanoseconds anything else.
// Reference: product_time.h, clock.h; Williams, Waterman, Patterson, "Roofline" (2009).

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/units.h"
#include "sim/compute/clock.h"
#include "sim/compute/gpu.h"
#include "sim/compute/work_time.h"
#include "sim/plan/kernel.h"
#include "sim/plan/plan.h"

namespace lockstep {

// What a copy of one gradient costs beside its bytes, and how fast the bytes move.
struct CopyCost {
  Duration per_tensor;
  Bandwidth bandwidth;  // gradient bytes per second, each read once and written once
};

// What is left of it once the board's limit has acted, or as a kernel meets it that is run for some
// milliseconds.
enum class Clock : std::uint8_t { held, boost };

// How operands are stored and multiplied.
struct Operands {
  Precision precision = Precision::fp32;
  std::int64_t bytes = 4;  // of an element
  Clock clock = Clock::held;
  bool stay_cached = false;  // attention's, used again as a benchmark does: what the cache holds stays there
  bool are_padded = false;   // to where vector loads can begin: by a compiler, or whoever asks for no shape

  static Operands of(Precision precision) { return {precision, operand_bytes(precision)}; }
};

struct Pricing {
  const GpuSpec& gpu;
  Precision precision = Precision::fp32;
  CopyCost copy;
  std::span<const RunTime> of_products = {};  // by the job's runs of products
};

// What the time of a kernel is made of; together that is kernel_time.
WorkTime work_time(const Pricing& pricing, const KernelWork& work);
Duration kernel_time(const Pricing& pricing, const KernelWork& work);

// One product, convolution or attention.
Duration product_time(const GpuSpec& gpu, const Operands& operands, const Kernel& kernel);

RunTime product_run(const GpuSpec& gpu, const Operands& operands, std::span<const Kernel> kernels);

// What bounds the clock in products of this precision.
PowerLimit power_limit(const GpuSpec& gpu, Precision precision);

// Whether products of this precision run on tensor cores (matrix cores, as AMD says).
bool uses_tensor_cores(const GpuSpec& gpu, Precision precision);

// On a host: what it reads and writes, at the speed of its memory.
Duration host_kernel_time(Bandwidth memory, const KernelWork& work);

// Achieved over peak of a GEMM of so many FLOPs, by the profile's curve.
Ratio matmul_efficiency(const GpuSpec& gpu, Precision precision, Flops flops);

// The dense peak a precision multiplies at: AMP at its half type, fp32 at fp32.
FlopRate matmul_peak(const GpuSpec& gpu, Precision precision);

// The memory bandwidth kernels reach.
Bandwidth achieved_memory_bandwidth(const GpuSpec& gpu);

}  // namespace lockstep
