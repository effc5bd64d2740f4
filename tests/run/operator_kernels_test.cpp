// An operator's kernels by who writes them, counted by hand.

#include "sim/run/operator_kernels.h"

#include <doctest/doctest.h>

#include "models/primitives.h"
#include "tests/support/scenarios.h"

namespace lockstep::operator_kernels_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t batch = 2;

OperatorKernels written_by(const char* kernels, const char* precision = "bf16", const char* modules = "torch",
                           bool is_autocast = false) {
  return OperatorKernels(scenario_from(
      Json{{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 1}}},
           {"model", {{"name", "bert_base"}, {"batch_per_gpu", batch}, {"precision", precision}}},
           {"training", {{"strategy", "single"}}},
           {"compute", {{"kernels", kernels}, {"modules", modules}, {"autocast", is_autocast}}}}));
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

// Of 100 elements: silu and a product, whose gradients are three kernels of three passes each. One kernel each way
// reads the gate and the other factor, and writes the product; reads those and its gradient, and writes two.
Layer gated() {
  return {.name = "gated",
          .forward_elements = 300,
          .backward_elements = 500,
          .pointwise_elements = 100,
          .merged_by = MergedBy::nobody,
          .eager_forward_elements = 200,
          .eager_backward_elements = 400,
          .eager_forward_kernels = 1,
          .eager_backward_kernels = 2};
}

// Dropout of a product and a sum, of 100 elements each, whose skip was read before: two gradients of it are added.
Layer residual() {
  return {.name = "residual",
          .forward_elements = 300,
          .backward_elements = 200 + 300,
          .saved_bytes = 50,
          .backward_pass_elements = 300,
          .backward_passes = 1,
          .pointwise_elements = 100,
          .merged_by = MergedBy::nobody,
          .eager_forward_elements = 200,
          .eager_forward_kernels = 1,
          .backward_kernels = 1 + 1};
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

TEST_CASE("a gated activation that is fused is three passes forward and five backward") {
  check(written_by("eager").forward(gated()), 2, 500);
  check(written_by("eager").backward(gated()), 3, 900);
  check(written_by("compiled").forward(gated()), 1, 300);
  check(written_by("fused").backward(gated()), 1, 500);
}

// Its mask is written and read by hand, and drawn again by a compiler, which reads one gradient more as it makes the
// other: 100 of 300.
TEST_CASE("a dropout and a sum after a product are one kernel of their own, and autograd's sum is another") {
  const auto with_mask = [](std::int64_t elements) { return (elements * 2 + 50) * batch; };
  const MemoryPasses by_hand = written_by("fused").forward(residual());
  CHECK(by_hand.count == 1);
  CHECK(by_hand.bytes == with_mask(300));
  const MemoryPasses back = written_by("fused").backward(residual());
  CHECK(back.count == 2);
  CHECK(back.bytes == with_mask(200 + 300));
  check(written_by("compiled").forward(residual()), 1, 300);
  check(written_by("compiled").backward(residual()), 1, 200 + 100);
  CHECK(written_by("eager").forward(residual()).count == 2);
  CHECK(written_by("eager").forward(residual()).bytes == with_mask(500));
}

TEST_CASE("what hands its gradient on has no kernel, but for the sum that it meets") {
  Layer sum = residual();
  sum.backward_elements = sum.backward_pass_elements;
  sum.backward_kernels = sum.backward_passes;
  sum.saved_bytes = 0;
  check(written_by("fused").backward(sum), 1, 300);
  check(written_by("compiled").backward(sum), 0, 100);
}

TEST_CASE("where a framework has no kernel for an operator it runs the formula") {
  check(written_by("primitives").forward(norm()), 3, 600);
  check(written_by("primitives").backward(norm()), 5, 900);
}

TEST_CASE("what every eager framework composes is a formula there too, unless the modules have a kernel") {
  Layer common = norm();
  common.composition->by = ComposedBy::operators;
  check(written_by("eager").forward(common), 3, 600);
  check(written_by("eager", "bf16", "megatron").forward(common), 1, 300);
  check(written_by("compiled").forward(common), 1, 200);
}

// By hand from NewGELUActivation, of 100 elements: power, times, +, times, tanh, +, half and product pass 18 times
// over them; their gradients 28 times in 11 kernels.
TEST_CASE(
    "transformers' gelu_new is eight kernels where operators run, in fp32 under autocast, and none "
    "compiled") {
  const Layer gelu_new{.name = "gelu_new",
                       .forward_elements = 200,
                       .backward_elements = 300,
                       .pointwise_elements = 100,
                       .composition = gelu_new_of_operators(100)};
  check(written_by("eager").forward(gelu_new), 8, 1800);
  check(written_by("eager").backward(gelu_new), 11, 2800);
  check(written_by("compiled").forward(gelu_new), 0, 0);
  check(written_by("eager", "bf16", "megatron").forward(gelu_new), 1, 200);
  check(written_by("eager", "amp_bf16").forward(gelu_new), 8, 1800);
  const OperatorKernels under_autocast = written_by("eager", "amp_bf16", "torch", true);
  check(under_autocast.forward(gelu_new), 8, 1800, 4);
  check(under_autocast.backward(gelu_new), 11, 2800, 4);
}

TEST_CASE("what autocast moves beside is moved by mixed precision's autocast alone") {
  const AutocastWork work{.bytes = 600, .casts = 1};
  check(written_by("eager", "amp_bf16", "torch", true).autocast(work), 1, 300);
  check(written_by("eager", "amp_bf16").autocast(work), 0, 0);
  check(written_by("eager", "bf16", "torch", true).autocast(work), 0, 0);
  check(written_by("compiled", "amp_bf16", "torch", true).autocast(work), 0, 0);
}

// Of 100 scores: read, cast and written 600 bytes, twice as wide twice 400. Half as many of fp16 are read twice as wide,
// and no cast is left.
TEST_CASE("autocast casts what a softmax of bf16 reads; one of fp16 makes fp32 itself") {
  const AutocastWork work{.bytes = 1000, .casts = 1, .softmax_of_half = 100};
  check(written_by("eager", "amp_bf16", "torch", true).autocast(work), 1, 500);
  check(written_by("eager", "amp_fp16", "torch", true).autocast(work), 0, 100);
}

// It neither reads what the kernel before it writes nor writes what that would: 200 - 2 x 100, 300 - 2 x 100.
TEST_CASE(
    "an operator that depends on its own place alone goes into the kernel before it, if anybody writes "
    "that") {
  check(written_by("compiled").forward(gelu()), 0, 0);
  check(written_by("compiled").backward(gelu()), 0, 100);
  check(written_by("eager").forward(gelu()), 1, 200);
  for (const char* kernels : {"eager", "compiled", "fused"}) {
    CAPTURE(kernels);
    Layer after_product = gelu();
    after_product.merged_by = MergedBy::nobody;
    check(written_by(kernels).forward(after_product), 1, 200);
    check(written_by(kernels).backward(after_product), 1, 300);
  }
  Layer after_softmax = gelu();
  after_softmax.merged_by = MergedBy::compiler;
  check(written_by("compiled").forward(after_softmax), 0, 0);
  check(written_by("fused").forward(after_softmax), 1, 200);
}

// 100 elements of 2 bytes: read and written as 4, twice; two of 4 multiplied, one way. In fp32 nothing is cast.
TEST_CASE("queries turned as complex numbers are cast, multiplied and cast back, whatever compiles") {
  const auto turned_by = [](const char* kernels, const char* precision) {
    return OperatorKernels(scenario_from(
        Json{{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 1}}},
             {"model", {{"name", "llama3_8b"}, {"batch_per_gpu", batch}, {"precision", precision}}},
             {"training", {{"strategy", "single"}}},
             {"compute", {{"kernels", kernels}, {"rotary_embedding", "complex"}}}}));
  };
  const Layer turned{.name = "rotary",
                     .forward_elements = 200,
                     .backward_elements = 200,
                     .pointwise_elements = 100,
                     .composition = rotary_of_primitives(100),
                     .is_rotary = true};
  for (const char* kernels : {"eager", "compiled"}) {
    const OperatorKernels in_half = turned_by(kernels, "bf16");
    for (const MemoryPasses& passes : {in_half.forward(turned), in_half.backward(turned)}) {
      CHECK(passes.count == 3);
      CHECK(passes.bytes == batch * 100 * (6 + 8 + 6));
    }
    CHECK(turned_by(kernels, "fp32").forward(turned).count == 1);
    CHECK(turned_by(kernels, "fp32").forward(turned).bytes == batch * 100 * 8);
  }
  check(turned_by("fused", "bf16").forward(turned), 0, 0);
}

// By hand from core/transformer/moe: the best few are 8 operators, the loss beside the loss 13, three rounds of
// Sinkhorn's 45 among 58; 4, 8 and 2 backward. Each reads and writes the scores.
TEST_CASE("a router is a few kernels or operator after operator, whoever writes the others") {
  const auto router_with = [](bool is_fused) {
    return OperatorKernels(scenario_from(
        Json{{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 1}}},
             {"model", {{"name", "bert_base"}, {"batch_per_gpu", batch}, {"precision", "bf16"}}},
             {"training", {{"strategy", "single"}}},
             {"compute", {{"kernels", "fused"}, {"moe_router_fusion", is_fused}}}}));
  };
  constexpr std::int64_t scores = 100;
  struct Expected {
    RouterBalancing balancing;
    int forward;
    int backward;
  };
  for (const auto& [balancing, forward, backward] :
       {Expected{RouterBalancing::none, 8, 4}, Expected{RouterBalancing::aux_loss, 8 + 13, 4 + 8},
        Expected{RouterBalancing::sinkhorn, 58, 2}}) {
    const Layer choice{.name = "choice",
                       .forward_elements = 300,
                       .backward_elements = 300,
                       .composition = router_of_operators(scores, balancing),
                       .forward_kernels = 3,
                       .backward_kernels = 2};
    check(router_with(true).forward(choice), 3, 300);
    check(router_with(true).backward(choice), 2, 300);
    check(router_with(false).forward(choice), forward, 2 * forward * scores);
    check(router_with(false).backward(choice), backward, 2 * backward * scores);
    CHECK(router_with(false).is_formula(choice));
    CHECK_FALSE(router_with(true).is_formula(choice));
  }
}

TEST_CASE("what a product reads where it lies is copied by operators alone") {
  Layer copy{.name = "copy", .forward_elements = 200, .backward_elements = 200, .pointwise_elements = 100};
  copy.merged_by = MergedBy::nobody;
  copy.is_view_forward = true;
  for (const char* kernels : {"compiled", "fused"}) {
    CAPTURE(kernels);
    check(written_by(kernels).forward(copy), 0, 0);
    check(written_by(kernels).backward(copy), 1, 200);
  }
  check(written_by("eager").forward(copy), 1, 200);
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
// the softmax follows (two); backward a product and softmax, three each, and four of the mask's copy.
TEST_CASE("Megatron's softmax in fp32 is a mask and a softmax") {
  Layer softmax = gelu();
  softmax.softmax_elements = 100;
  check(written_by("fused", "fp32", "megatron").forward(softmax), 2, 400, 4);
  check(written_by("fused", "fp32", "megatron").backward(softmax), 4, 1000, 4);
  check(written_by("fused", "bf16", "megatron").forward(softmax), 0, 0);
}

}  // namespace lockstep::operator_kernels_test
