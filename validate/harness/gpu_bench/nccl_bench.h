#pragma once

// NCCL as the bench uses it: a call on one GPU, and every collective between the GPUs of one machine.
//
// Problem:   a training step uses one collective or two; a simulator of clusters needs them all, to 1 GiB,
//            and as they are with an algorithm, protocol or number of channels forced (NCCL_ALGO and the
//            like).
// Idea:      one process, all GPUs, each call in one group, timed by the host over back-to-back calls, as
//            nccl-tests does with -g; what is written is a table in nccl-tests' columns, which
//            `lockstep calibrate` reads as it is.
// Invariant: what arrives is checked once a size, and wrong elements are counted in the table.
// Reference: NVIDIA/nccl-tests doc/PERFORMANCE.md: which bytes count, and busbw.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace lockstep::harness {

// A communicator of one GPU: what a call costs the host.
class OneGpuNccl {
 public:
  OneGpuNccl(int device, cudaStream_t stream);
  ~OneGpuNccl();
  void all_reduce_few() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string nccl_version();

struct CollectiveBenchOptions {
  std::string path;
  std::string op;  // as collective_names() has it
  int gpus = 0;
  std::int64_t least_bytes = 8;
  std::int64_t most_bytes = 0;
  std::function<bool()> time_is_up;
};
// False where the time was up first; what was measured is in the file.
bool measure_collective(const CollectiveBenchOptions& options);

}  // namespace lockstep::harness
