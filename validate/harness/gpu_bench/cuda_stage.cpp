#include "validate/harness/gpu_bench/cuda_stage.h"

#include <cmath>
#include <cstring>

#include "validate/harness/device/cuda_check.h"
#include "validate/harness/device/cuda_device.h"

namespace lockstep::harness {

template <class Value>
MappedValues<Value>::MappedValues(std::size_t count) {
  void* memory = nullptr;
  check_call(cudaMallocHost(&memory, count * sizeof(Value)), "cudaMallocHost");
  std::memset(memory, 0, count * sizeof(Value));
  values_ = static_cast<Value*>(memory);
}

template <class Value>
MappedValues<Value>::~MappedValues() {
  ignore_failure(cudaFreeHost(values_));
}

template class MappedValues<HoldReport>;
template class MappedValues<OccupantReport>;
template class MappedValues<std::uint32_t>;

CudaStage::CudaStage(int index)
    : device_(make_cuda_device(index)), runtime_(runtime_of(*device_)), report_(1) {}

void CudaStage::hold(double seconds) {
  launch_hold(stream(), std::llround(seconds * 1e9), report_.get());
}

bool CudaStage::has_passed(Mark mark) {
  const cudaError_t code = cudaEventQuery(runtime_.marks().at(mark.index));
  if (code == cudaErrorNotReady) {
    ignore_failure(cudaGetLastError());  // the next launch shall not report it
    return false;
  }
  check_call(code, "cudaEventQuery");
  return true;
}

std::optional<double> CudaStage::clock_mhz() {
  const std::uint64_t nanoseconds = report_[0].nanoseconds;
  if (nanoseconds == 0)
    return std::nullopt;
  return static_cast<double>(report_[0].cycles) * 1e3 / static_cast<double>(nanoseconds);
}

}  // namespace lockstep::harness
