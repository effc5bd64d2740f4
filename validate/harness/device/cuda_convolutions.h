#pragma once

// Convolutions on a GPU, by cuDNN.
//
// Problem:   cuDNN has many algorithms for one convolution and describes each operand by an object of its
//            own.
// Idea:      for each shape and type these objects are made once and the fastest algorithm is found by trying
//            all on the operands at hand, at the shape's first use; its workspace is shared, since one stream
//            runs in order. Images are NHWC and weights KRSC, so nothing is moved.
// Invariant: sums are fp32; after the first step nothing is tried or allocated. Weight gradients come in the
//            activations' type, as cuDNN has them.
// Reference: cuDNN's API of convolutions by descriptors (cudnn_cnn.h).

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

// As cuDNN calls them ("IMPLICIT_PRECOMP_GEMM"); empty where there is none yet.
struct ConvolutionAlgorithms {
  std::string forward;
  std::string input_gradient;
  std::string weight_gradient;
};

class CudaConvolutions {
 public:
  explicit CudaConvolutions(cudaStream_t stream);
  ~CudaConvolutions();

  // Each is false, and nothing was done, where cuDNN has no algorithm for it on this GPU.
  bool forward(const Convolution& shape, Tensor output, Tensor input, Tensor weight);
  bool input_gradient(const Convolution& shape, Tensor input_gradient, Tensor output_gradient, Tensor weight);
  // Overwrites; `weight_gradient` has the type of the activations.
  bool weight_gradient(const Convolution& shape, Tensor weight_gradient, Tensor output_gradient,
                       Tensor input);
  void use_tf32();
  std::string version() const;
  // What was found to be the fastest.
  ConvolutionAlgorithms algorithms_of(const Convolution& shape, Type type) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::harness
