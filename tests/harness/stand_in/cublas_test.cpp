#include <cublas_v2.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "tests/harness/device/tested_device.h"
#include "tests/harness/stand_in/gpu_numbers.h"
#include "validate/harness/device/cuda_products.h"

namespace lockstep::harness::stand_in::cublas_test {

cudaDataType data_type_of(Type type) {
  if (type == Type::fp32)
    return CUDA_R_32F;
  return type == Type::fp16 ? CUDA_R_16F : CUDA_R_16BF;
}

class Handle {
 public:
  explicit Handle(cudaStream_t stream) {
    CHECK(cublasCreate(&handle_) == CUBLAS_STATUS_SUCCESS);
    CHECK(cublasSetStream(handle_, stream) == CUBLAS_STATUS_SUCCESS);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { cublasDestroy(handle_); }
  cublasHandle_t get() const { return handle_; }

 private:
  cublasHandle_t handle_ = nullptr;
};

// All that one call of the product takes; leading dimensions are larger than they must be.
struct Gemm {
  cublasOperation_t turn_a = CUBLAS_OP_N;
  cublasOperation_t turn_b = CUBLAS_OP_N;
  std::int64_t m = 5;
  std::int64_t n = 3;
  std::int64_t k = 4;
  std::int64_t leading_a = 7;
  std::int64_t leading_b = 8;
  std::int64_t leading_c = 6;
  std::int64_t stride_a = 60;
  std::int64_t stride_b = 50;
  std::int64_t stride_c = 40;
  std::int64_t batches = 2;
  float alpha = 0.5F;
  float beta = 0;
  Type factors = Type::fp32;
  Type output = Type::fp32;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};

cublasStatus_t call(cublasHandle_t handle, const Gemm& g, const void* a, const void* b, void* c) {
  return cublasGemmStridedBatchedEx_64(
      handle, g.turn_a, g.turn_b, g.m, g.n, g.k, &g.alpha, a, data_type_of(g.factors), g.leading_a,
      g.stride_a, b, data_type_of(g.factors), g.leading_b, g.stride_b, &g.beta, c, data_type_of(g.output),
      g.leading_c, g.stride_c, g.batches, g.compute, CUBLAS_GEMM_DEFAULT);
}

// What BLAS says it computes, in double precision. What no product covers stays.
Numbers expected(const Gemm& g, const Numbers& a, const Numbers& b, Numbers c) {
  const auto at = [](cublasOperation_t turn, std::int64_t row, std::int64_t column, std::int64_t leading) {
    return turn == CUBLAS_OP_T ? row * leading + column : column * leading + row;
  };
  for (std::int64_t batch = 0; batch < g.batches; ++batch) {
    for (std::int64_t i = 0; i < g.m * g.n; ++i) {
      const std::int64_t row = i % g.m;
      const std::int64_t column = i / g.m;
      double sum = 0;
      for (std::int64_t k = 0; k < g.k; ++k)
        sum += a[static_cast<std::size_t>(batch * g.stride_a + at(g.turn_a, row, k, g.leading_a))] *
               b[static_cast<std::size_t>(batch * g.stride_b + at(g.turn_b, k, column, g.leading_b))];
      double& result = c[static_cast<std::size_t>(batch * g.stride_c + column * g.leading_c + row)];
      result = static_cast<double>(g.alpha) * sum + static_cast<double>(g.beta) * result;
    }
  }
  return c;
}

struct Types {
  Type factors;
  Type output;
};
constexpr Types type_pairs[] = {{Type::fp32, Type::fp32},
                                {Type::fp16, Type::fp16},
                                {Type::fp16, Type::fp32},
                                {Type::bf16, Type::bf16},
                                {Type::bf16, Type::fp32}};

// The single number of 1 x 1 = [1, k] [k, 1], with beta 0.
double dot(const Types& types, const Numbers& a, const Numbers& b,
           cublasComputeType_t compute = CUBLAS_COMPUTE_32F, bool disallows_reduced = true) {
  GpuNumbers gpu;
  const Handle handle(gpu.runtime.stream());
  if (disallows_reduced)
    cublasSetMathMode(handle.get(), CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  const auto k = static_cast<std::int64_t>(a.size());
  const Tensor result = gpu.tensor_of({0}, types.output);
  CHECK(call(handle.get(),
             {.m = 1,
              .n = 1,
              .k = k,
              .leading_a = 1,
              .leading_b = k,
              .leading_c = 1,
              .batches = 1,
              .alpha = 1,
              .factors = types.factors,
              .output = types.output,
              .compute = compute},
             gpu.tensor_of(a, types.factors).data, gpu.tensor_of(b, types.factors).data,
             result.data) == CUBLAS_STATUS_SUCCESS);
  return gpu.numbers_in(result)[0];
}

TEST_CASE("a product has the numbers that BLAS defines, whatever the transposes, types and scales") {
  for (const Types& types : type_pairs) {
    for (int bits = 0; bits < 8; ++bits) {
      GpuNumbers gpu;
      const Handle handle(gpu.runtime.stream());
      const Gemm gemm{.turn_a = (bits & 1) != 0 ? CUBLAS_OP_T : CUBLAS_OP_N,
                      .turn_b = (bits & 2) != 0 ? CUBLAS_OP_T : CUBLAS_OP_N,
                      .beta = (bits & 4) != 0 ? 2.0F : 0.0F,
                      .factors = types.factors,
                      .output = types.output};
      const Numbers a = whole_numbers(120, 1);
      const Numbers b = whole_numbers(100, 2);
      const Numbers c = whole_numbers(80, 3);
      const Tensor result = gpu.tensor_of(c, types.output);
      CHECK(call(handle.get(), gemm, gpu.tensor_of(a, types.factors).data,
                 gpu.tensor_of(b, types.factors).data, result.data) == CUBLAS_STATUS_SUCCESS);
      CAPTURE(bits);
      CHECK(gpu.numbers_in(result) == expected(gemm, a, b, c));
    }
  }
}

TEST_CASE("what the output held is not read where beta is 0") {
  CHECK(dot({Type::fp32, Type::fp32}, {2}, {3}) == 6);
  GpuNumbers gpu;
  const Handle handle(gpu.runtime.stream());
  const Tensor result = gpu.tensor_of(Numbers(80, std::numeric_limits<double>::quiet_NaN()), Type::fp32);
  const Numbers ones(120, 1);
  CHECK(call(handle.get(), {.batches = 1}, gpu.tensor_of(ones, Type::fp32).data,
             gpu.tensor_of(ones, Type::fp32).data, result.data) == CUBLAS_STATUS_SUCCESS);
  CHECK(gpu.numbers_in(result)[0] == 2);  // 0.5 * 4 ones
}

// 1 + 2^-11 needs eleven bits behind the point, of which TF32 keeps ten: a tie, and 1 is even.
TEST_CASE("TF32 rounds the factors and not the sum") {
  const Numbers wide{1 + 0x1p-11, 1};
  const Numbers small{1, 0x1p-20};
  const Types singles{Type::fp32, Type::fp32};
  CHECK(dot(singles, wide, small) == 1 + 0x1p-11 + 0x1p-20);
  CHECK(dot(singles, wide, small, CUBLAS_COMPUTE_32F_FAST_TF32) == 1 + 0x1p-20);
}

// In fp16 numbers from 1 on are 2^-10 apart. 1 + 2^-12 and 2^-11, each rounded, make 1 + 2^-11: a tie, and 1
// is even. Unrounded they are nearer to 1 + 2^-10.
TEST_CASE("sums are kept in fp32, unless parts of them may be kept in the output's type") {
  const Numbers terms{1, 0x1p-12, 0x1p-11, 0};
  const Numbers ones(4, 1);
  CHECK(dot({Type::fp16, Type::fp16}, terms, ones) == 1 + 0x1p-10);
  CHECK(dot({Type::fp16, Type::fp16}, terms, ones, CUBLAS_COMPUTE_32F, false) == 1);
  CHECK(dot({Type::fp16, Type::fp32}, terms, ones, CUBLAS_COMPUTE_32F, false) == 1 + 0x1p-11 + 0x1p-12);
}

TEST_CASE("a product of nothing along its inner side is 0 times alpha, and one without outputs is nothing") {
  GpuNumbers gpu;
  const Handle handle(gpu.runtime.stream());
  const Tensor result = gpu.tensor_of(Numbers(80, 3), Type::fp32);
  CHECK(call(handle.get(), {.k = 0, .batches = 1, .beta = 2}, nullptr, nullptr, result.data) ==
        CUBLAS_STATUS_SUCCESS);
  CHECK(gpu.numbers_in(result)[0] == 6);
  CHECK(call(handle.get(), {.m = 0}, nullptr, nullptr, nullptr) == CUBLAS_STATUS_SUCCESS);
}

TEST_CASE("arguments that do not fit are refused, each with cuBLAS's own code") {
  GpuNumbers gpu;
  const Handle handle(gpu.runtime.stream());
  const Tensor a = gpu.tensor_of(Numbers(120, 1), Type::fp32);
  const Tensor b = gpu.tensor_of(Numbers(100, 1), Type::fp32);
  const Tensor c = gpu.tensor_of(Numbers(80, 1), Type::fp32);
  const auto code = [&](const Gemm& gemm) { return call(handle.get(), gemm, a.data, b.data, c.data); };
  CHECK(code({}) == CUBLAS_STATUS_SUCCESS);
  CHECK(code({.leading_a = 5}) == CUBLAS_STATUS_SUCCESS);
  CHECK(code({.leading_a = 4}) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(code({.turn_a = CUBLAS_OP_T, .leading_a = 4}) == CUBLAS_STATUS_SUCCESS);
  CHECK(code({.turn_a = CUBLAS_OP_T, .leading_a = 3}) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(code({.leading_b = 3}) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(code({.leading_c = 4}) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(code({.m = -1}) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(code({.batches = -1}) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(code({.factors = Type::fp32, .output = Type::fp16}) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(code({.factors = Type::fp16, .output = Type::bf16}) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(code({.factors = Type::fp16, .compute = CUBLAS_COMPUTE_32F_FAST_TF32}) ==
        CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(call(handle.get(), {}, nullptr, b.data, c.data) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(call(handle.get(), {}, a.data, b.data, nullptr) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasSetWorkspace(handle.get(), nullptr, 1) == CUBLAS_STATUS_INVALID_VALUE);
}

TEST_CASE("a handle that was ended is no handle") {
  cublasHandle_t handle = nullptr;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasSetStream(handle, nullptr) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasCreate(nullptr) == CUBLAS_STATUS_INVALID_VALUE);
}

TEST_CASE("a product writes over the workspace, which a new stream takes from the handle") {
  GpuNumbers gpu;
  const Handle handle(gpu.runtime.stream());
  const Tensor workspace = gpu.tensor_of(Numbers(64, 1), Type::fp32);
  const Tensor ones = gpu.tensor_of(Numbers(120, 1), Type::fp32);
  const Tensor result = gpu.tensor_of(Numbers(80, 1), Type::fp32);
  CHECK(cublasSetWorkspace(handle.get(), workspace.data, 256) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSetStream(handle.get(), gpu.runtime.stream()) == CUBLAS_STATUS_SUCCESS);
  CHECK(call(handle.get(), {}, ones.data, ones.data, result.data) == CUBLAS_STATUS_SUCCESS);
  CHECK(gpu.numbers_in(workspace) == Numbers(64, 1));
  CHECK(cublasSetWorkspace(handle.get(), workspace.data, 256) == CUBLAS_STATUS_SUCCESS);
  CHECK(call(handle.get(), {}, ones.data, ones.data, result.data) == CUBLAS_STATUS_SUCCESS);
  CHECK(gpu.numbers_in(workspace) != Numbers(64, 1));
}

TEST_CASE("the harness's products of row-major matrices, through cuBLAS, are those written out") {
  const std::unique_ptr<Device> written_out = make_tested_device();
  GpuNumbers gpu;
  CudaProducts products(gpu.runtime.stream());
  for (const Types& types : type_pairs) {
    for (int bits = 0; bits < 8; ++bits) {
      const bool turns_a = (bits & 1) != 0;
      const bool turns_b = (bits & 2) != 0;
      Matmul matmul{
          .a = {.tensor = {}, .is_transposed = turns_a, .stride = turns_a ? 6 : 9, .batch_stride = 60},
          .b = {.tensor = {}, .is_transposed = turns_b, .stride = turns_b ? 7 : 4, .batch_stride = 60},
          .output = {.tensor = {}, .stride = 5, .batch_stride = 40},
          .rows = 6,
          .columns = 4,
          .inner = 7,
          .batches = 2,
          .scale = 0.5F,
          .accumulates = (bits & 4) != 0};
      matmul.a.tensor = gpu.tensor_of(whole_numbers(120, 1), types.factors);
      matmul.b.tensor = gpu.tensor_of(whole_numbers(120, 2), types.factors);
      matmul.output.tensor = gpu.tensor_of(whole_numbers(80, 3), types.output);
      products.multiply(matmul);
      const Numbers by_cublas = gpu.numbers_in(matmul.output.tensor);

      const Buffer a = on_device(*written_out, whole_numbers(120, 1), types.factors);
      const Buffer b = on_device(*written_out, whole_numbers(120, 2), types.factors);
      const Buffer output = on_device(*written_out, whole_numbers(80, 3), types.output);
      matmul.a.tensor = a.tensor();
      matmul.b.tensor = b.tensor();
      matmul.output.tensor = output.tensor();
      written_out->matmul(matmul);
      CAPTURE(bits);
      CHECK(by_cublas == numbers_of(*written_out, output));
    }
  }
}

}  // namespace lockstep::harness::stand_in::cublas_test
