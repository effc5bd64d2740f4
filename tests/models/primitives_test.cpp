// Operators written of primitives: what their formulas move, and that they never move less than one kernel does.

#include "models/primitives.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/models/instance.h"

namespace lockstep::primitives_test {
namespace {

constexpr std::int64_t wide = 4;
constexpr std::int64_t half = 2;

// y = gamma (x - mean) / sqrt(variance + epsilon) + beta, as nn_impl.py has it: read x; read x, write its squared
// difference; read that; write gamma / sqrt(...); read it and x, write; read it, write; read that, write; read both,
// write.
TEST_CASE("LayerNorm of primitives passes over fifteen times its input forward") {
  const Composition norm = layer_norm_of_primitives(100);
  CHECK(norm.forward.bytes(wide) == 100 * wide * (1 + 2 + 1 + 1 + 3 + 2 + 2 + 3));
  CHECK(norm.forward.bytes(half) == norm.forward.bytes(wide) / 2);
  CHECK(norm.forward.launches(half) == norm.forward.launches(wide));
}

TEST_CASE("RMSNorm of primitives is cast to fp32 and back where its input is narrower, and nowhere else") {
  const Composition norm = rms_norm_of_primitives(100);
  // square, mean, x * root, times the weight
  CHECK(norm.forward.bytes(wide) == 100 * wide * (2 + 1 + 2 + 2));
  CHECK(norm.forward.bytes(half) == 100 * (wide * (2 + 1 + 2) + half * 2 + 2 * (half + wide)));
  CHECK(norm.forward.launches(half) == norm.forward.launches(wide) + 2);
}

TEST_CASE("GELU's formula has eight kernels, two of which read two tensors") {
  const Composition gelu = gelu_of_primitives(100);
  CHECK(gelu.forward.bytes(wide) == 100 * wide * (6 * 2 + 2 * 3));
  CHECK(gelu.forward.launches(wide) == 8);
}

// nn_impl.py, swish: a sigmoid and a product; backward three kernels that read one tensor and three that read two.
TEST_CASE("SiLU's formula has two kernels forward and six backward, which take the sigmoid again") {
  const Composition silu = silu_of_primitives(100);
  CHECK(silu.forward.bytes(wide) == 100 * wide * (2 + 3));
  CHECK(silu.forward.launches(wide) == 2);
  CHECK(silu.backward.bytes(half) == 100 * half * (3 * 2 + 3 * 3));
  CHECK(silu.backward.launches(half) == 6);
}

// keras/applications/mobilenet_v3.py: x (relu6(x + 3) / 6); backward, the sixth's product reads one tensor, relu6's
// gradient, both products' and the sum of x's two gradients read two.
TEST_CASE("The hard swish's formula is a hard sigmoid's and a product") {
  const Composition swish = hardswish_of_primitives(100);
  CHECK(swish.forward.bytes(wide) == 100 * wide * (3 * 2 + 3));
  CHECK(swish.forward.launches(wide) == 4);
  CHECK(swish.backward.bytes(half) == 100 * half * (2 + 4 * 3));
  CHECK(swish.backward.launches(half) == 5);
  CHECK(hardsigmoid_of_primitives(100).forward.launches(wide) == 3);
}

TEST_CASE("A residual adds two tensors, whatever its dropout is made of") {
  const PrimitiveWork dropout = dropout_of_primitives(100).forward;
  CHECK(residual_of_primitives(100, false).forward.bytes(wide) == 100 * wide * 3);
  CHECK(residual_of_primitives(100, true).forward.bytes(wide) == dropout.bytes(wide) + 100 * wide * 3);
}

TEST_CASE("No layer of any model moves less or starts fewer kernels where it is made of primitives") {
  for (const std::string& name : shipped_model_names()) {
    const Model model = shipped_model(name);
    for (const Layer& layer : model.layers) {
      if (!layer.composition || layer.product)
        continue;
      INFO(name, " ", layer.name);
      const Composition& formula = *layer.composition;
      const std::int64_t summed =
          layer.backward_pass_elements;  // gradients that meet stand beside the formula
      // A layer of one kernel may read more than once where operators run.
      const auto beside = [](std::int64_t elements, int kernels) { return kernels > 0 ? elements : 0; };
      CHECK(formula.forward.bytes(wide) >=
            wide *
                (layer.forward_elements + beside(layer.eager_forward_elements, layer.eager_forward_kernels)));
      CHECK(formula.backward.bytes(wide) >=
            wide * (layer.backward_elements - summed +
                    beside(layer.eager_backward_elements, layer.eager_backward_kernels)));
      CHECK(formula.forward.kernels >= layer.forward_kernels + layer.eager_forward_kernels);
      CHECK(formula.backward.kernels >=
            layer.backward_kernels + layer.eager_backward_kernels - layer.backward_passes);
    }
  }
}

}  // namespace
}  // namespace lockstep::primitives_test
