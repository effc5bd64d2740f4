#pragma once

// What a fake cuDNN remembers of its handles and descriptors.
//
// Idea:      a descriptor holds what it was last told; whether it fits the others is judged where they meet.
// Invariant: what an entry point refuses, it explains in the last error of the calling thread, which is a
//            rank.

#include <cudnn.h>

#include <array>
#include <optional>
#include <string>

#include "validate/harness/device/tensor.h"
#include "validate/harness/stand_in/live_objects.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

struct cudnnTensorStruct {
  std::optional<lockstep::harness::Type> type;  // none before it is set
  std::array<int, 4> sizes = {};                // in the order NCHW
};

struct cudnnFilterStruct {
  std::optional<lockstep::harness::Type> type;
  std::array<int, 4> sizes = {};  // in the order KCRS
};

struct cudnnConvolutionStruct {
  bool is_set = false;
  int padding_height = 0;
  int padding_width = 0;
  int stride_height = 1;
  int stride_width = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

namespace lockstep::harness::stand_in {

LiveObjects<cudnnContext>& cudnn_handles();
LiveObjects<cudnnTensorStruct>& cudnn_tensors();
LiveObjects<cudnnFilterStruct>& cudnn_filters();
LiveObjects<cudnnConvolutionStruct>& cudnn_operations();

// Returns the status.
cudnnStatus_t refused(cudnnStatus_t status, const char* why);

}  // namespace lockstep::harness::stand_in
