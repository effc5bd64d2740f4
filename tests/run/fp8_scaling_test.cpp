// What scaling into fp8 moves: each tensor twice in half precision to be read, twice in one byte to be written.

#include "sim/run/fp8_scaling.h"

#include <doctest/doctest.h>

#include "tests/support/scenarios.h"

namespace lockstep::fp8_scaling_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t batch = 2;
constexpr std::int64_t scaled = 2 + 2 + 1 + 1;  // bytes an element

Fp8Scaling scaling(const char* precision, const char* kernels, int micro_batches = 1) {
  return Fp8Scaling(
      scenario_from(Json{{"cluster", {{"machine", "dgx_h100"}, {"gpus_per_node", 1}}},
                         {"model", {{"name", "gpt2"}, {"batch_per_gpu", batch}, {"precision", precision}}},
                         {"training", {{"strategy", "single"}, {"gradient_accumulation", micro_batches}}},
                         {"compute", {{"kernels", kernels}}}}));
}

// 16 rows of 32 numbers, times a weight of 32 x 64.
Layer product(int block) {
  return {.name = "product",
          .block = block,
          .weight_elements = 32 * 64,
          .product = GemmShape{.m = 16, .n = 64, .k = 32}};
}

}  // namespace

TEST_CASE("convolutions of blocks stay in half precision, and nothing is scaled for them") {
  const Layer convolution{
      .name = "convolution", .block = 0, .weight_elements = 64, .product = ConvolutionShape{}};
  CHECK(multiplied_precision(convolution, Precision::fp8) == Precision::bf16);
  CHECK(scaling("fp8", "eager").of_operands(convolution, false).bytes == 0);
  CHECK(scaling("fp8", "eager").of_gradient(convolution).count == 0);
}

TEST_CASE("the products of blocks' weights alone are in fp8") {
  CHECK(multiplied_precision(product(0), Precision::fp8) == Precision::fp8);
  CHECK(multiplied_precision(product(-1), Precision::fp8) == Precision::bf16);
  CHECK(multiplied_precision({.name = "attention", .block = 0}, Precision::fp8) == Precision::bf16);
  CHECK(multiplied_precision(product(0), Precision::bf16) == Precision::bf16);
}

TEST_CASE("a product scales its input and its weight, two passes each, and its gradient") {
  const MemoryPasses operands = scaling("fp8", "compiled").of_operands(product(0), false);
  CHECK(operands.count == 4);
  CHECK(operands.bytes == (16 * 32 * batch + 32 * 64) * scaled);
  const MemoryPasses gradient = scaling("fp8", "compiled").of_gradient(product(0));
  CHECK(gradient.count == 2);
  CHECK(gradient.bytes == 16 * 64 * batch * scaled);
}

TEST_CASE("delayed scaling reads a tensor once: its greatest element is noted for steps to come") {
  const Fp8Scaling delayed(
      scenario_from(Json{{"cluster", {{"machine", "dgx_h100"}, {"gpus_per_node", 1}}},
                         {"model", {{"name", "gpt2"}, {"batch_per_gpu", batch}, {"precision", "fp8"}}},
                         {"training", {{"strategy", "single"}}},
                         {"compute", {{"kernels", "compiled"}, {"fp8_recipe", "delayed"}}}}));
  CHECK(delayed.of_operands(product(0), false).count == 2);
  CHECK(delayed.of_operands(product(0), false).bytes == (16 * 32 * batch + 32 * 64) * (2 + 1 + 1));
  CHECK(delayed.of_gradient(product(0)).count == 1);
  CHECK(delayed.of_gradient(product(0)).bytes == 16 * 64 * batch * (2 + 1 + 1));
}

TEST_CASE("layers that read one input scale it once") {
  const MemoryPasses operands = scaling("fp8", "compiled").of_operands(product(0), true);
  CHECK(operands.count == 2);
  CHECK(operands.bytes == 32 * 64 * scaled);
}

TEST_CASE("hand-written kernels scale a weight once a step, others once a micro-batch") {
  CHECK(scaling("fp8", "fused", 4).of_operands(product(0), true).bytes == 32 * 64 / 4 * scaled);
  CHECK(scaling("fp8", "fused", 4).of_operands(product(0), true).count == 0);
  CHECK(scaling("fp8", "fused", 4).of_operands(product(0), false).count == 2);
  CHECK(scaling("fp8", "compiled", 4).of_operands(product(0), true).bytes == 32 * 64 * scaled);
}

TEST_CASE("nothing is scaled outside of blocks, nor in another precision") {
  CHECK(scaling("fp8", "compiled").of_operands(product(-1), false).count == 0);
  CHECK(scaling("fp8", "compiled").of_gradient(product(-1)).bytes == 0);
  CHECK(scaling("bf16", "compiled").of_operands(product(0), false).count == 0);
}

}  // namespace lockstep::fp8_scaling_test
