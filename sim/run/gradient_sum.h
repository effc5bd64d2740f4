#pragma once

// What it takes to add the gradients of a micro-batch to those of the ones before.
//
// Problem:   a product writes a weight's gradient once; with several micro-batches somebody adds it to a sum, which is
//            as large as the weights and read and written for each.
// Idea:      PyTorch's autograd adds what the product wrote to what is there, a pass over three tensors, but for the
//            first; Megatron-LM, and DeepSpeed in bf16, add all to a buffer of their own, which may be wider, DeepSpeed
//            after it has cast them; and where the sum is fused a linear layer's product itself reads it and writes it
//            in the gradient's place. What no product wrote (norms, biases, embeddings) has a kernel either way.
// Invariant: beside what writes a gradient anyway; nothing is added where whole gradients are reduced after each
//            micro-batch. Where the first is not added, its kernels are counted and only its bytes are not.
// Reference: PyTorch, autograd/functions/accumulate_grad.h; Megatron-LM, core/tensor_parallel/layers.py
//            (gradient_accumulation_fusion) and core/distributed; DeepSpeed, runtime/bf16_optimizer.py
//            (update_hp_grads).

#include <cstdint>

#include "sim/scenario/scenario.h"

namespace lockstep {

struct GradientSum {
  std::int64_t width = 4;  // bytes that an element stands in
  std::int64_t micro_batches = 1;
  std::int64_t additions = 0;         // of a step; 0: nothing is added up
  std::int64_t kernels = 0;           // of each tensor and addition, where no product adds
  std::int64_t bytes_by_kernels = 0;  // of each element, by these
  std::int64_t bytes_by_product = 0;  // of each element, where the product that writes it adds
  bool is_fused = false;              // linear layers' products add
  bool is_beside_gradients = false;   // which stand whole until backward ends, and are added to it then
};

GradientSum gradient_sum(const Scenario& scenario);

}  // namespace lockstep
