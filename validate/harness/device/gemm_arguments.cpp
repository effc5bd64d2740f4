#include "validate/harness/device/gemm_arguments.h"

#include "sim/base/check.h"

namespace lockstep::harness {
namespace {

// `height` and `width` are those of the factor in the product; it is stored the other way round if
// transposed.
GemmFactor as_stored(const Factor& factor, std::int64_t height, std::int64_t width) {
  const std::int64_t stored_width = factor.is_transposed ? height : width;
  LOCKSTEP_CHECK(factor.stride == 0 || factor.stride >= stored_width, "rows of a factor do not overlap");
  const std::int64_t stride = factor.stride == 0 ? stored_width : factor.stride;
  return {factor.tensor, factor.is_transposed, stride, factor.batch_stride};
}

}  // namespace

GemmArguments gemm_arguments(const Matmul& matmul) {
  LOCKSTEP_CHECK(!matmul.output.is_transposed, "a product is stored as it is");
  return {.first = as_stored(matmul.b, matmul.inner, matmul.columns),
          .second = as_stored(matmul.a, matmul.rows, matmul.inner),
          .output = as_stored(matmul.output, matmul.rows, matmul.columns),
          .m = matmul.columns,
          .n = matmul.rows,
          .k = matmul.inner,
          .batches = matmul.batches,
          .alpha = matmul.scale,
          .beta = matmul.accumulates ? 1.0F : 0.0F};
}

}  // namespace lockstep::harness
