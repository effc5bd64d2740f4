#pragma once

// Products of matrices on a GPU, by cuBLAS.
//
// Idea:      gemm_arguments.h turns a row-major product round; sums are kept in fp32 whatever the factors
//            are.
// Invariant: fp32 factors are not rounded unless TF32 was asked for. A workspace of its own, so that nothing
//            is allocated in a step.

#include <cublas_v2.h>

#include <string>

#include "validate/harness/device/cuda_scratch.h"
#include "validate/harness/device/device.h"

namespace lockstep::harness {

class CudaProducts {
 public:
  explicit CudaProducts(cudaStream_t stream);
  void multiply(const Matmul& matmul);
  void use_tf32() { uses_tf32_ = true; }
  std::string version() const;

 private:
  class Library {
   public:
    Library();
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    ~Library();
    cublasHandle_t get() const { return handle_; }

   private:
    cublasHandle_t handle_ = nullptr;
  };

  Library library_;
  CudaScratch workspace_;
  bool uses_tf32_ = false;
};

}  // namespace lockstep::harness
