#pragma once

// How long a kernel takes on a GPU that nothing disturbs.
//
// Problem:   a scenario states a model and a GPU, rarely a time for each kernel.
// Idea:      a kernel takes the longer of computing and moving its bytes: FLOPs over the peak of the
//            precision times the efficiency a GEMM of that size reaches, bytes over the achieved memory
//            bandwidth; and never less than the shortest time a kernel occupies its stream.
// Invariant: integers only; durations round up. A kernel that states its duration takes exactly that.
// Cost:      one table look-up a kernel.
// Reference: Williams, Waterman, Patterson, "Roofline" (2009).

#include <cstdint>

#include "sim/base/units.h"
#include "sim/compute/gpu.h"
#include "sim/plan/plan.h"

namespace lockstep {

// What a copy of one gradient costs beside its bytes, and how fast the bytes move.
struct CopyCost {
  Duration per_tensor;
  Bandwidth bandwidth;  // gradient bytes per second, each read once and written once
};

struct Pricing {
  const GpuSpec& gpu;
  Precision precision = Precision::fp32;
  CopyCost copy;
};

Duration kernel_time(const Pricing& pricing, const KernelWork& work);

// On a host: what it reads and writes, at the speed of its memory.
Duration host_kernel_time(Bandwidth memory, const KernelWork& work);

// Achieved over peak, in parts per million, of a GEMM of so many FLOPs.
std::int64_t matmul_efficiency_ppm(const GpuSpec& gpu, Precision precision, Flops flops);

// The dense peak a precision multiplies at: AMP at its half type, fp32 at fp32.
FlopRate matmul_peak(const GpuSpec& gpu, Precision precision);

// The memory bandwidth kernels reach.
Bandwidth achieved_memory_bandwidth(const GpuSpec& gpu);

}  // namespace lockstep
