#pragma once

// What it takes to multiply in fp8.
//
// Problem:   a tensor fits into fp8 only once it is scaled by its greatest element; and not every product is made in it.
// Idea:      each operand is read and written along both dimensions, as the products of forward and backward read it.
//            Under current scaling it was read for its greatest before; delayed scaling takes that of earlier steps and
//            notes the new one in passing. Layers that read one tensor scale it once.
// Invariant: in fp8 are the products of the blocks' weights alone: attention, what goes before the blocks and behind
//            them (the head) stay in half precision.
// Reference: Transformer Engine (fp8_dpa false; cast_transpose; is_first_microbatch; common/recipe: DelayedScaling,
//            Float8CurrentScaling), Megatron-LM (the output layer is none of its modules), torchtitan (filter_fqns
//            output), torchao (float8 with tensorwise scaling).

#include <cstdint>

#include "sim/run/operator_kernels.h"

namespace lockstep {

// Of the layer's products, where the model is trained in `precision`.
Precision multiplied_precision(const Layer& layer, Precision precision);

class Fp8Scaling {
 public:
  explicit Fp8Scaling(const Scenario& scenario);

  MemoryPasses of_operands(const Layer& layer, bool reads_same_input) const;
  MemoryPasses of_gradient(const Layer& layer) const;

 private:
  bool is_scaled(const Layer& layer) const;
  std::int64_t scaling_bytes() const;  // of an element

  std::int64_t batch_;
  Precision precision_;
  std::int64_t passes_;
  std::int64_t weight_uses_;  // of a weight once it is scaled: hand-written kernels keep it for a step
};

}  // namespace lockstep
