#pragma once

// The part of cuBLAS that the harness calls, declared for a GPU in host memory.
//
// Idea:      names, signatures and numbers are those of cuBLAS 13 after its macros.
// Invariant: as in cuda_runtime_api.h.
// Reference: NVIDIA, cuBLAS 13.0.

#include <cuda_runtime_api.h>

#include <cstdint>

using cublasHandle_t = struct cublasContext*;

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};

enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16 };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };

const char* cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes);
cublasStatus_t cublasGetProperty(libraryPropertyType property, int* value);
cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t operation_a,
                                             cublasOperation_t operation_b, std::int64_t m, std::int64_t n,
                                             std::int64_t k, const void* alpha, const void* a,
                                             cudaDataType type_a, std::int64_t leading_a,
                                             long long int stride_a, const void* b, cudaDataType type_b,
                                             std::int64_t leading_b, long long int stride_b, const void* beta,
                                             void* c, cudaDataType type_c, std::int64_t leading_c,
                                             long long int stride_c, std::int64_t batches,
                                             cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
