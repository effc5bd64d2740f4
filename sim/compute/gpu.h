#pragma once

// A GPU as its profile states it: peaks, memory, and how much of a peak a kernel of some size reaches.
//
// Idea:      data-sheet figures stay apart from measured ratios: better constants change no data sheet. What
//            kernels reach stands in the constants of the architecture; a processor that was measured as a whole
//            has a curve instead.
// Invariant: curves ascend in FLOPs.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/compute/kernel_constants.h"
#include "sim/plan/precision.h"

namespace lockstep {

// Achieved over peak for a GEMM of so many FLOPs; linear in the logarithm of the FLOPs between points, flat beyond
// them.
struct EfficiencyPoint {
  Flops flops;
  Ratio efficiency;
};

struct GpuSpec {
  std::string name;
  std::string source;
  std::int64_t compute_capability = 0;  // 90 is 9.0; 0: not a CUDA device
  bool is_amd = false;                  // whose libraries are ROCm's
  std::map<Precision, FlopRate> peak;   // dense matrix peak by the precision of the multiplication
  FlopRate vector_peak;
  Bytes memory;
  Bandwidth memory_bandwidth;
  Ratio memory_efficiency = Ratio::percent(85);
  Bytes l2;  // 0: not stated
  std::int64_t sms = 1;
  std::int64_t tdp_milliwatts = 0;
  Duration kernel_launch;  // the shortest time a kernel occupies its stream
  Duration host_launch;    // what the host thread spends on launching one
  std::map<Precision, std::vector<EfficiencyPoint>> matmul_efficiency;  // where there are no `kernels`
  std::optional<KernelConstants> kernels;
};

}  // namespace lockstep
