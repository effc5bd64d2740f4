#pragma once

// What it takes to add the gradients of a micro-batch to those of the ones before.
//
// Problem:   a product writes a weight's gradient once; with several micro-batches somebody adds it to a sum, which is
//            as large as the weights and read and written for each.
// Idea:      PyTorch's autograd adds what the product wrote to what is there, a pass over three tensors, but for the
//            first; Megatron-LM, and DeepSpeed in bf16, add all to a buffer of their own, which may be wider; and
//            where the sum is fused the product itself reads it and writes it.
// Invariant: beside what the product writes anyway, in bytes of the gradients themselves. Fused, what no product adds
//            (norms, biases, embeddings) is charged no more an element than what a product does, which is too little.
// Reference: PyTorch, autograd/functions/accumulate_grad.h; Megatron-LM, core/tensor_parallel/layers.py
//            (gradient_accumulation_fusion) and core/distributed; DeepSpeed, runtime/bf16_optimizer.py
//            (update_hp_grads).

#include <cstdint>

#include "sim/scenario/scenario.h"

namespace lockstep {

struct GradientSum {
  std::int64_t width = 4;  // bytes that an element stands in
  std::int64_t micro_batches = 1;
  std::int64_t additions = 0;      // of a step; 0: nothing is added up
  std::int64_t element_bytes = 0;  // of each element and addition
  bool is_fused = false;           // no kernels of its own
};

GradientSum gradient_sum(const Scenario& scenario);

}  // namespace lockstep
