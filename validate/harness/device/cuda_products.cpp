#include "validate/harness/device/cuda_products.h"

#include <fmt/format.h>

#include <array>

#include "sim/base/check.h"
#include "validate/harness/device/cuda_check.h"
#include "validate/harness/device/gemm_arguments.h"

namespace lockstep::harness {
namespace {

// What NVIDIA recommends for Hopper; earlier ones need less.
constexpr std::int64_t workspace_bytes = 32 << 20;

cublasOperation_t operation_of(const GemmFactor& factor) {
  return factor.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

cudaDataType_t data_type_of(Type type) {
  LOCKSTEP_CHECK(type != Type::int32, "products are of floating-point numbers");
  if (type == Type::fp32)
    return CUDA_R_32F;
  return type == Type::fp16 ? CUDA_R_16F : CUDA_R_16BF;
}

}  // namespace

CudaProducts::Library::Library() {
  check_call(cublasCreate(&handle_), "cublasCreate");
}

CudaProducts::Library::~Library() {
  cublasDestroy(handle_);
}

CudaProducts::CudaProducts(cudaStream_t stream) {
  check_call(cublasSetStream(library_.get(), stream), "cublasSetStream");
  // Without it, parts of one sum may be added in the half type of the output.
  check_call(
      cublasSetMathMode(library_.get(), static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                                           CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
      "cublasSetMathMode");
  check_call(cublasSetWorkspace(library_.get(), workspace_.at_least(workspace_bytes), workspace_bytes),
             "cublasSetWorkspace");
}

void CudaProducts::multiply(const Matmul& matmul) {
  const GemmArguments gemm = gemm_arguments(matmul);
  if (gemm.m == 0 || gemm.n == 0 || gemm.batches == 0)
    return;
  const Type factors = gemm.first.tensor.type;
  LOCKSTEP_CHECK(factors == gemm.second.tensor.type, "both factors of a product have one type");
  const Type output = gemm.output.tensor.type;
  LOCKSTEP_CHECK(output == Type::fp32 || output == factors, "a product has its factors' type or fp32");
  const bool rounds_factors = uses_tf32_ && factors == Type::fp32;
  check_call(cublasGemmStridedBatchedEx_64(
                 library_.get(), operation_of(gemm.first), operation_of(gemm.second), gemm.m, gemm.n, gemm.k,
                 &gemm.alpha, gemm.first.tensor.data, data_type_of(factors), gemm.first.leading_dimension,
                 gemm.first.batch_stride, gemm.second.tensor.data, data_type_of(factors),
                 gemm.second.leading_dimension, gemm.second.batch_stride, &gemm.beta, gemm.output.tensor.data,
                 data_type_of(output), gemm.output.leading_dimension, gemm.output.batch_stride, gemm.batches,
                 rounds_factors ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
             "cublasGemmStridedBatchedEx");
}

std::string CudaProducts::version() const {
  const auto part = [](libraryPropertyType property) {
    int value = 0;
    check_call(cublasGetProperty(property, &value), "cublasGetProperty");
    return value;
  };
  return fmt::format("cuBLAS {}.{}.{}", part(MAJOR_VERSION), part(MINOR_VERSION), part(PATCH_LEVEL));
}

}  // namespace lockstep::harness
