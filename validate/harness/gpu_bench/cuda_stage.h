#pragma once

// A GPU's stream that can be held back: stage.h on CUDA.
//
// Idea:      the device's own stream is held by a kernel that spins; what it counted lies in memory that the host
//            reads without asking the GPU.
// Invariant: the clock is that of the last hold that ended.

#include <memory>

#include "validate/harness/device/cuda_runtime.h"
#include "validate/harness/device/device.h"
#include "validate/harness/gpu_bench/cuda_bench_kernels.h"
#include "validate/harness/gpu_bench/stage.h"

namespace lockstep::harness {

// Memory that host and GPU both read and write.
template <class Value>
class MappedValues {
 public:
  explicit MappedValues(std::size_t count);
  MappedValues(const MappedValues&) = delete;
  MappedValues& operator=(const MappedValues&) = delete;
  ~MappedValues();
  volatile Value& operator[](std::size_t index) const { return values_[index]; }
  Value* get() const { return values_; }

 private:
  Value* values_ = nullptr;
};

class CudaStage final : public Stage {
 public:
  explicit CudaStage(int index);

  Device& device() override { return *device_; }
  void hold(double seconds) override;
  bool has_passed(Mark mark) override;
  std::optional<double> clock_mhz() override;

  CudaRuntime& runtime() { return runtime_; }
  cudaStream_t stream() const { return runtime_.stream(); }

 private:
  std::unique_ptr<Device> device_;
  CudaRuntime& runtime_;
  MappedValues<HoldReport> report_;
};

}  // namespace lockstep::harness
