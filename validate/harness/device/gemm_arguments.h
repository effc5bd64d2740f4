#pragma once

// A product of row-major matrices in the terms of BLAS, which reads matrices column by column.
//
// Problem:   cuBLAS knows column-major matrices only, and a wrong order or leading dimension shows on a GPU
//            alone.
// Idea:      a row-major matrix read column by column is its transpose; output' = b' a' is the product asked
//            for with its factors swapped and nothing moved in memory. Which numbers that makes is a pure
//            function, tested against the CPU's product.
// Invariant: a factor is read transposed by BLAS exactly where the caller stored it transposed.

#include <cstdint>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

struct GemmFactor {
  Tensor tensor;
  bool is_transposed = false;
  std::int64_t leading_dimension = 0;  // distance of two columns
  std::int64_t batch_stride = 0;
};

// output = alpha * first * second + beta * output: [m, n] = [m, k] [k, n], column-major.
struct GemmArguments {
  GemmFactor first;
  GemmFactor second;
  GemmFactor output;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batches = 1;
  float alpha = 1;
  float beta = 0;
};

GemmArguments gemm_arguments(const Matmul& matmul);

}  // namespace lockstep::harness
