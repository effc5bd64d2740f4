#include "validate/harness/device/gemm_arguments.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "validate/harness/device/cpu_device.h"

namespace lockstep::harness::gemm_arguments_test {

// What BLAS says a gemm computes, for column-major matrices.
void reference_gemm(const GemmArguments& gemm) {
  for (std::int64_t batch = 0; batch < gemm.batches; ++batch) {
    const auto element = [batch](const GemmFactor& factor, std::int64_t row, std::int64_t column) {
      const std::int64_t place = factor.is_transposed ? row * factor.leading_dimension + column
                                                      : column * factor.leading_dimension + row;
      return factor.tensor.as<float>() + batch * factor.batch_stride + place;
    };
    for (std::int64_t column = 0; column < gemm.n; ++column) {
      for (std::int64_t row = 0; row < gemm.m; ++row) {
        float sum = 0;
        for (std::int64_t inner = 0; inner < gemm.k; ++inner)
          sum += *element(gemm.first, row, inner) * *element(gemm.second, inner, column);
        float* const output = element(gemm.output, row, column);
        *output = gemm.alpha * sum + (gemm.beta == 0 ? 0 : gemm.beta * *output);
      }
    }
  }
}

// Small whole numbers: every sum is exact, so that any order gives the same bits.
std::vector<float> whole_numbers(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random() % 7) - 3.0F;
  return values;
}

struct Case {
  bool transposes_a = false;
  bool transposes_b = false;
  std::int64_t gap = 0;  // between rows as they are stored
  std::int64_t batches = 1;
  bool accumulates = false;
};

constexpr std::int64_t rows = 5;
constexpr std::int64_t columns = 3;
constexpr std::int64_t inner = 4;
constexpr std::int64_t room = 100;  // of one matrix of a batch, gaps included

Matmul product_of(const Case& c, std::vector<float>& a, std::vector<float>& b, std::vector<float>& output) {
  const auto view = [](std::vector<float>& values) {
    return Tensor{values.data(), static_cast<std::int64_t>(values.size()), Type::fp32};
  };
  const auto stride = [&](std::int64_t width) { return c.gap == 0 ? 0 : width + c.gap; };
  return {.a = {view(a), c.transposes_a, stride(c.transposes_a ? rows : inner), room},
          .b = {view(b), c.transposes_b, stride(c.transposes_b ? inner : columns), room},
          .output = {view(output), false, stride(columns), room},
          .rows = rows,
          .columns = columns,
          .inner = inner,
          .batches = c.batches,
          .scale = 0.5F,
          .accumulates = c.accumulates};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (int bits = 0; bits < 32; ++bits)
    cases.push_back({.transposes_a = (bits & 1) != 0,
                     .transposes_b = (bits & 2) != 0,
                     .gap = (bits & 4) != 0 ? 3 : 0,
                     .batches = (bits & 8) != 0 ? 3 : 1,
                     .accumulates = (bits & 16) != 0});
  return cases;
}

TEST_CASE("a column-major gemm with these arguments is the product of row-major matrices") {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  for (const Case& c : all_cases()) {
    const auto size = static_cast<std::size_t>(c.batches * room);
    std::vector<float> a = whole_numbers(size, 1);
    std::vector<float> b = whole_numbers(size, 2);
    std::vector<float> by_gemm = whole_numbers(size, 3);
    std::vector<float> by_cpu = by_gemm;
    reference_gemm(gemm_arguments(product_of(c, a, b, by_gemm)));
    cpu->matmul(product_of(c, a, b, by_cpu));
    CAPTURE(c.transposes_a);
    CAPTURE(c.transposes_b);
    CAPTURE(c.gap);
    CAPTURE(c.batches);
    CAPTURE(c.accumulates);
    CHECK(by_gemm == by_cpu);
    CHECK(by_gemm != whole_numbers(size, 3));
  }
}

TEST_CASE("leading dimensions are as large as BLAS demands: a column as it is stored") {
  for (const Case& c : all_cases()) {
    std::vector<float> a(room * 3), b(room * 3), output(room * 3);
    const GemmArguments gemm = gemm_arguments(product_of(c, a, b, output));
    CHECK(gemm.first.leading_dimension >= (gemm.first.is_transposed ? gemm.k : gemm.m));
    CHECK(gemm.second.leading_dimension >= (gemm.second.is_transposed ? gemm.n : gemm.k));
    CHECK(gemm.output.leading_dimension >= gemm.m);
  }
}

}  // namespace lockstep::harness::gemm_arguments_test
