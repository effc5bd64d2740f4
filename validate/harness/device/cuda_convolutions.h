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
  // What was found so far (convolution_choice.h), and what another rank found, to do as it does.
  std::string choices() const;
  void follow(const std::string& choices);
  std::string version() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::harness
