#include <memory>

#include "sim/base/check.h"
#include "validate/harness/device/cuda_device.h"
#include "validate/harness/device/cuda_executor.cuh"
#include "validate/harness/device/gpu_device.h"

namespace lockstep::harness {

std::unique_ptr<Device> make_cuda_device(int index) {
  return std::make_unique<GpuDevice<GridExecutor>>(index);
}

CudaRuntime& runtime_of(Device& device) {
  auto* const gpu = dynamic_cast<GpuDevice<GridExecutor>*>(&device);
  LOCKSTEP_CHECK(gpu != nullptr, "the CUDA backend works with its own devices");
  return gpu->runtime;
}

}  // namespace lockstep::harness
