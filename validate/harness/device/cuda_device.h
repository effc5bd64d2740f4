#pragma once

// A GPU that training steps run on: small kernels of its own, cuBLAS, cuDNN where it was found.
//
// Errors:    EnvironmentError where there is no GPU ("no CUDA device was found"), it fails, or its memory is
//            used up; each message names the call, its code and what to do.

#include <memory>

#include "validate/harness/device/cuda_runtime.h"
#include "validate/harness/device/device.h"

namespace lockstep::harness {

// `index` is below count_cuda_devices().
std::unique_ptr<Device> make_cuda_device(int index);

// Of a device that make_cuda_device made: its stream and marks, for NCCL.
CudaRuntime& runtime_of(Device& device);

}  // namespace lockstep::harness
