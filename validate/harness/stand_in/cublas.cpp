// cuBLAS in host memory: products of column-major matrices, as operations on the handle's stream.
//
// Problem:   a wrong leading dimension, type or workspace shows on a GPU alone.
// Idea:      arguments are judged as cuBLAS judges them, sums are kept in fp32, and what a setting permits is
//            done: TF32 rounds the factors; reductions in the output's type, unless they are disallowed, are
//            made in two halves.
// Invariant: scalars are read when the call is made, matrices when the operation runs. A new stream takes the
//            handle's workspace away, as cuBLAS has it.
// Reference: NVIDIA, cuBLAS 13.0, "cublasGemmStridedBatchedEx()", "cublasSetWorkspace()".

#include <cublas_v2.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "validate/harness/stand_in/live_objects.h"
#include "validate/harness/stand_in/numbers.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  void* workspace = nullptr;
  std::int64_t workspace_bytes = 0;
};

namespace lockstep::harness::stand_in {
namespace {

LiveObjects<cublasContext>& handles() {
  static LiveObjects<cublasContext> live("cuBLAS handle");
  return live;
}

std::optional<Type> type_of(cudaDataType type) {
  if (type == CUDA_R_32F)
    return Type::fp32;
  if (type == CUDA_R_16F)
    return Type::fp16;
  return type == CUDA_R_16BF ? std::optional(Type::bf16) : std::nullopt;
}

// A stored matrix of `rows` by `columns`, once for each product of a batch.
template <class Pointer>
struct Matrix {
  Pointer memory = nullptr;
  Type type = Type::fp32;
  std::int64_t leading = 0;
  std::int64_t stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::int64_t place_of(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    return batch * stride + column * leading + row;
  }
  bool is_stored_right() const { return leading >= std::max<std::int64_t>(1, rows) && stride >= 0; }
  bool is_empty() const { return rows == 0 || columns == 0; }
  Memory covered(std::int64_t batches) const {
    if (is_empty())
      return {};
    return {memory, (place_of(batches - 1, rows - 1, columns - 1) + 1) * bytes_of(type)};
  }
  std::int64_t bytes() const { return rows * columns * bytes_of(type); }
};
using Source = Matrix<const void*>;
using Result = Matrix<void*>;

struct Product {
  Source a;
  Source b;
  Result c;
  bool transposes_a = false;
  bool transposes_b = false;
  std::int64_t inner = 0;
  std::int64_t batches = 0;
  float alpha = 1;
  float beta = 0;
  bool rounds_to_tf32 = false;
  bool sums_in_halves = false;
};

// Packed so that what stands in one column of the product's left factor, or one of its right, lies together.
std::vector<float> packed(const Source& matrix, std::int64_t batch, bool is_transposed, bool rounds_to_tf32) {
  const std::int64_t rows = is_transposed ? matrix.columns : matrix.rows;
  const std::int64_t columns = is_transposed ? matrix.rows : matrix.columns;
  std::vector<float> numbers;
  numbers.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t column = 0; column < columns; ++column) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t place =
          is_transposed ? matrix.place_of(batch, column, row) : matrix.place_of(batch, row, column);
      const float number = number_at(matrix.memory, place, matrix.type);
      numbers.push_back(rounds_to_tf32 ? rounded_to_tf32(number) : number);
    }
  }
  return numbers;
}

// sums[row] += left[row, k] * right[k] for k of [first, end)
void add_products(std::vector<float>& sums, const std::vector<float>& left, const float* right,
                  std::int64_t first, std::int64_t end) {
  const std::size_t rows = sums.size();
  float* const to = sums.data();
  for (std::int64_t k = first; k < end; ++k) {
    const float* const column = left.data() + static_cast<std::size_t>(k) * rows;
    const float factor = right[k];
    for (std::size_t row = 0; row < rows; ++row) to[row] += column[row] * factor;
  }
}

std::vector<float> column_of_product(const Product& product, const std::vector<float>& left,
                                     const float* right) {
  const auto rows = static_cast<std::size_t>(product.c.rows);
  std::vector<float> sums(rows);
  if (!product.sums_in_halves) {
    add_products(sums, left, right, 0, product.inner);
    return sums;
  }
  std::vector<float> rest(rows);
  add_products(sums, left, right, 0, product.inner / 2);
  add_products(rest, left, right, product.inner / 2, product.inner);
  for (std::size_t row = 0; row < rows; ++row)
    sums[row] = rounded_to(product.c.type, sums[row]) + rounded_to(product.c.type, rest[row]);
  return sums;
}

void multiply(const Product& product, std::int64_t batch) {
  const Result& c = product.c;
  const std::vector<float> left = packed(product.a, batch, product.transposes_a, product.rounds_to_tf32);
  const std::vector<float> right = packed(product.b, batch, product.transposes_b, product.rounds_to_tf32);
  for (std::int64_t column = 0; column < c.columns; ++column) {
    const std::vector<float> sums = column_of_product(product, left, right.data() + column * product.inner);
    for (std::int64_t row = 0; row < c.rows; ++row) {
      const std::int64_t place = c.place_of(batch, row, column);
      const float before = product.beta == 0 ? 0.0F : product.beta * number_at(c.memory, place, c.type);
      store_at(c.memory, place, c.type, product.alpha * sums[static_cast<std::size_t>(row)] + before);
    }
  }
}

Work work_of(const Product& product) {
  const std::int64_t bytes =
      product.a.bytes() + product.b.bytes() + (product.beta == 0 ? 1 : 2) * product.c.bytes();
  const auto elements = static_cast<double>(product.c.rows * product.c.columns * product.batches);
  return {.flops = 2 * elements * static_cast<double>(product.inner), .bytes = bytes * product.batches};
}

void enqueue_product(const cublasContext& handle, const Product& product) {
  Operation operation{.name = "cublasGemmStridedBatchedEx_64", .work = work_of(product)};
  if (product.inner > 0)
    operation.reads = {product.a.covered(product.batches), product.b.covered(product.batches)};
  const Memory output = product.c.covered(product.batches);
  if (product.beta != 0)
    operation.reads.push_back(output);
  operation.writes = {output};
  if (handle.workspace_bytes > 0)
    operation.writes.push_back({handle.workspace, handle.workspace_bytes});
  operation.run = [product, workspace = handle.workspace, bytes = handle.workspace_bytes] {
    spoil(workspace, bytes);
    for (std::int64_t batch = 0; batch < product.batches; ++batch) multiply(product, batch);
  };
  enqueue(handle.stream, std::move(operation));
}

// Products of one type, into that type or fp32; TF32 is a way to multiply fp32.
bool is_supported(std::optional<Type> a, std::optional<Type> b, std::optional<Type> c,
                  cublasComputeType_t compute) {
  if (!a || a != b || !c)
    return false;
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32)
    return a == Type::fp32 && c == Type::fp32;
  return compute == CUBLAS_COMPUTE_32F && (c == a || c == Type::fp32);
}

bool is_valid(const Product& product) {
  const bool has_sizes =
      product.c.rows >= 0 && product.c.columns >= 0 && product.inner >= 0 && product.batches >= 0;
  const bool has_memory =
      product.c.memory != nullptr &&
      (product.inner == 0 || (product.a.memory != nullptr && product.b.memory != nullptr));
  const bool is_nothing = product.c.is_empty() || product.batches == 0;
  return has_sizes && product.a.is_stored_right() && product.b.is_stored_right() &&
         product.c.is_stored_right() && (is_nothing || has_memory);
}

}  // namespace
}  // namespace lockstep::harness::stand_in

using lockstep::harness::Type;
using namespace lockstep::harness::stand_in;

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "unknown cuBLAS status";
}

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  if (must_fail(__func__))
    return CUBLAS_STATUS_ALLOC_FAILED;
  if (handle == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  *handle = handles().make();
  return CUBLAS_STATUS_SUCCESS;
}

// What fails while it ends something has ended it.
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  const bool fails = must_fail(__func__);
  if (!handles().end(handle))
    return CUBLAS_STATUS_NOT_INITIALIZED;
  return fails ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  if (must_fail(__func__))
    return CUBLAS_STATUS_INTERNAL_ERROR;
  if (!handles().holds(handle))
    return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->stream = stream_argument(__func__, __builtin_return_address(0), stream);
  handle->workspace = nullptr;
  handle->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  if (must_fail(__func__))
    return CUBLAS_STATUS_INTERNAL_ERROR;
  if (!handles().holds(handle))
    return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  if (must_fail(__func__))
    return CUBLAS_STATUS_INTERNAL_ERROR;
  if (!handles().holds(handle))
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (workspace == nullptr && bytes > 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  handle->workspace = workspace;
  handle->workspace_bytes = static_cast<std::int64_t>(bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType property, int* value) {
  if (must_fail(__func__))
    return CUBLAS_STATUS_INTERNAL_ERROR;
  if (value == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  *value = property == MAJOR_VERSION ? 13 : 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t operation_a,
                                             cublasOperation_t operation_b, std::int64_t m, std::int64_t n,
                                             std::int64_t k, const void* alpha, const void* a,
                                             cudaDataType type_a, std::int64_t leading_a,
                                             long long int stride_a, const void* b, cudaDataType type_b,
                                             std::int64_t leading_b, long long int stride_b, const void* beta,
                                             void* c, cudaDataType type_c, std::int64_t leading_c,
                                             long long int stride_c, std::int64_t batches,
                                             cublasComputeType_t compute, cublasGemmAlgo_t /*algorithm*/) {
  if (must_fail(__func__))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!handles().holds(handle))
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!is_supported(type_of(type_a), type_of(type_b), type_of(type_c), compute))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (alpha == nullptr || beta == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  const bool turns_a = operation_a == CUBLAS_OP_T;
  const bool turns_b = operation_b == CUBLAS_OP_T;
  const Type output = *type_of(type_c);
  const Product product{
      .a = {a, *type_of(type_a), leading_a, stride_a, turns_a ? k : m, turns_a ? m : k},
      .b = {b, *type_of(type_b), leading_b, stride_b, turns_b ? n : k, turns_b ? k : n},
      .c = {c, output, leading_c, stride_c, m, n},
      .transposes_a = turns_a,
      .transposes_b = turns_b,
      .inner = k,
      .batches = batches,
      .alpha = *static_cast<const float*>(alpha),
      .beta = *static_cast<const float*>(beta),
      .rounds_to_tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32,
      .sums_in_halves =
          output != Type::fp32 && (handle->math & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) == 0};
  if (!is_valid(product))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (m > 0 && n > 0 && batches > 0)
    enqueue_product(*handle, product);
  return CUBLAS_STATUS_SUCCESS;
}
