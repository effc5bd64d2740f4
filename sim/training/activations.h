#pragma once

// What backward keeps of a micro-batch, layer by layer, and what each backward holds while it runs.
//
// Problem:   recomputation trades activations for time; what stays depends on which layers run again, and on who
//            wrote the kernels.
// Idea:      a run of layers that is computed again keeps only the input of its first layer, until it is
//            there in full for its backward. Attention that is computed again keeps its queries, keys and
//            values, and forgets what it made of them. A product or an attention that is saved where the rest of
//            its block runs again keeps its output. Eager kernels keep what each operator of theirs keeps,
//            under autocast norms and softmax in fp32 and a cast for each product; a compiler keeps neither masks
//            nor what is pointwise of what it keeps. A loss keeps its logits as its framework takes it. Older
//            releases of PyTorch kept more.
// Reference: Korthikanti et al., arXiv 2205.05198 (34 s b h a layer with selective recomputation, 2 s b h
//            with full); torch/csrc/autograd and torch.amp's list of fp32 operators; Wijmans et al., arXiv
//            2411.09009, table 1 (logits in bf16: 14 bytes each in eager PyTorch, 8 compiled);
//            Megatron-LM core/tensor_parallel/cross_entropy.py (probabilities in fp32, in place);
//            transformers pytorch_utils.softmax_backward_data (softmax's input, until 1.11);
//            ATen/autocast_mode.cpp of 1.9 (gelu in fp32).

#include <cstdint>

#include "sim/plan/kernel_style.h"
#include "sim/plan/model.h"
#include "sim/plan/precision.h"
#include "sim/training/job.h"

namespace lockstep {

// How a micro-batch is computed.
struct BatchUse {
  Precision precision = Precision::fp32;
  KernelStyle kernels = KernelStyle::eager;
  std::int64_t samples = 1;
};

// `job` describes the same layers as `model` and knows which run again.
void describe_activations(Job& job, const Model& model, const BatchUse& use);

}  // namespace lockstep
