#pragma once

// The executor of a GPU in host memory, whose kernels run when they are launched.

#include "validate/harness/stand_in/simt.h"
// What it includes must know CUDA's words.
#include "validate/harness/device/cuda_executor.cuh"

namespace lockstep::harness {

struct HostGrid {
  explicit HostGrid(std::uint64_t seed = 0) { stand_in::seed_threads(seed); }

  CudaScratch scratch = {};
  GridExecutor executor{nullptr, scratch};
};

}  // namespace lockstep::harness
