// An operator's kernels by who writes them, counted by hand.

#include "sim/run/operator_kernels.h"

#include <doctest/doctest.h>

#include "tests/support/scenarios.h"

namespace lockstep::operator_kernels_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t batch = 2;

OperatorKernels written_by(const char* kernels, const char* precision = "bf16",
                           const char* modules = "torch") {
  return OperatorKernels(scenario_from(
      Json{{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 1}}},
           {"model", {{"name", "bert_base"}, {"batch_per_gpu", batch}, {"precision", precision}}},
           {"training", {{"strategy", "single"}}},
           {"compute", {{"kernels", kernels}, {"modules", modules}}}}));
}

// A norm of 100 elements: read, written, and by an eager kernel read once more. Its formula is three passes.
Layer norm() {
  return {.name = "norm",
          .forward_elements = 200,
          .backward_elements = 300,
          .eager_forward_elements = 100,
          .composition = Composition{.forward = {.elements = 600, .kernels = 3},
                                     .backward = {.elements = 900, .kernels = 5}}};
}

// A GELU of 100 elements, which a compiler writes into the product before it.
Layer gelu() {
  return {.name = "gelu", .forward_elements = 200, .backward_elements = 300, .pointwise_elements = 100};
}

void check(const MemoryPasses& passes, std::int64_t count, std::int64_t elements,
           std::int64_t element_bytes = 2) {
  CHECK(passes.count == count);
  CHECK(passes.bytes == elements * element_bytes * batch);
}

}  // namespace

TEST_CASE("an eager norm reads its rows again, a compiled one does not") {
  check(written_by("eager").forward(norm()), 1, 300);
  check(written_by("compiled").forward(norm()), 1, 200);
  check(written_by("fused").forward(norm()), 1, 200);
  check(written_by("eager", "fp32").forward(norm()), 1, 300, 4);
}

TEST_CASE("where a framework has no kernel for an operator it runs the formula") {
  check(written_by("primitives").forward(norm()), 3, 600);
  check(written_by("primitives").backward(norm()), 5, 900);
}

TEST_CASE("what every eager framework composes is a formula there too, unless the modules have a kernel") {
  Layer common = norm();
  common.composition->is_common = true;
  check(written_by("eager").forward(common), 3, 600);
  check(written_by("eager", "bf16", "megatron").forward(common), 1, 300);
  check(written_by("compiled").forward(common), 1, 200);
}

// It neither reads what the kernel before it writes nor writes what that would: 200 - 2 x 100, 300 - 2 x 100.
TEST_CASE("an operator that depends on its own place alone goes into the kernel before it") {
  check(written_by("compiled").forward(gelu()), 0, 0);
  check(written_by("compiled").backward(gelu()), 0, 100);
  check(written_by("eager").forward(gelu()), 1, 200);
}

TEST_CASE("a mask is written and read, but by a compiler, which draws it again") {
  Layer dropout = gelu();
  dropout.saved_bytes = 50;
  CHECK(written_by("eager").forward(dropout).bytes == (200 * 2 + 50) * batch);
  CHECK(written_by("compiled").forward(dropout).bytes == 0);
}

// Logits of 100 elements, of which the loss reads 100: cast (2 read, 4 written), then read in fp32.
TEST_CASE("a loss is taken in fp32") {
  const Layer loss{.name = "loss", .forward_elements = 100, .saved_elements = 100, .is_loss = true};
  CHECK(written_by("eager").forward(loss).bytes == (100 * bytes_of_cast + 100 * 4) * batch);
  CHECK(written_by("compiled").forward(loss).bytes == 100 * 4 * batch);
  CHECK(written_by("eager", "fp32").forward(loss).bytes == 100 * 4 * batch);
}

// Megatron's own kernel takes half precision: in fp32 a mask is filled in place (one pass to read, one to write) and
// the softmax follows (two); backward three of its own, and four of the mask's copy.
TEST_CASE("Megatron's softmax in fp32 is a mask and a softmax") {
  Layer softmax = gelu();
  softmax.softmax_elements = 100;
  check(written_by("fused", "fp32", "megatron").forward(softmax), 1, 400, 4);
  check(written_by("fused", "fp32", "megatron").backward(softmax), 1, 700, 4);
  check(written_by("fused", "bf16", "megatron").forward(softmax), 0, 0);
}

}  // namespace lockstep::operator_kernels_test
