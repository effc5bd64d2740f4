#include "validate/harness/device/cuda_check.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace lockstep::harness {
namespace {

const char* advice_on(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "GPU memory is used up: take a smaller --batch or model, or end what else uses this GPU";
    case cudaErrorNoKernelImageForDevice:
      return "this program was not compiled for this GPU: configure with -DCMAKE_CUDA_ARCHITECTURES=native";
    case cudaErrorInsufficientDriver:
      return "the NVIDIA driver is older than the CUDA this program was compiled with: update the driver";
    case cudaErrorDevicesUnavailable:
      return "another process has this GPU to itself: choose another with CUDA_VISIBLE_DEVICES";
    case cudaErrorIllegalAddress:
      return "a kernel left its memory; compute-sanitizer names it";
    case cudaErrorECCUncorrectable:
      return "the GPU's memory is damaged: reset it or choose another with CUDA_VISIBLE_DEVICES";
    default:
      return "nvidia-smi and the kernel's log (dmesg, Xid) tell the state of the GPU";
  }
}

}  // namespace

void check_call(cudaError_t code, const char* call) {
  if (code == cudaSuccess)
    return;
  throw EnvironmentError(fmt::format("{} failed with {} ({}): {}", call, cudaGetErrorName(code),
                                     cudaGetErrorString(code), advice_on(code)));
}

void check_call(cublasStatus_t code, const char* call) {
  if (code == CUBLAS_STATUS_SUCCESS)
    return;
  const char* advice =
      code == CUBLAS_STATUS_ALLOC_FAILED || code == CUBLAS_STATUS_NOT_INITIALIZED
          ? "GPU memory may be used up: take a smaller --batch, or end what else uses this GPU"
          : "CUBLAS_LOGINFO_DBG=1 makes cuBLAS tell more";
  throw EnvironmentError(fmt::format("{} failed with {}: {}", call, cublasGetStatusString(code), advice));
}

void check_launch() {
  check_call(cudaGetLastError(), "launching a kernel");
}

}  // namespace lockstep::harness
