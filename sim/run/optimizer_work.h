#pragma once

// What updating the weights moves and launches.
//
// Problem:   one update of a parameter is 12 to 196 bytes and 1 to 23 kernels, by who wrote the optimizer.
// Idea:      for each optimizer three counts: one pass over everything, operators that work in place, and the formula
//            whose results are assigned; lists of tensors share launches. Beside it fp16's gradients are divided by their
//            scale, and fp32 copies of half-precision weights are kept in step with these.
// Invariant: one pass never moves more than operators, nor these more than the formula.
// Reference: torch/optim (adam.py, sgd.py: _multi_tensor and _single_tensor functions); TensorFlow,
//            core/kernels/training_ops.cc; NVIDIA DeepLearningExamples, TensorFlow BERT, optimization.py (LAMB);
//            MindSpore, AdamWeightDecay. Megatron-LM, core/optimizer/optimizer.py (_copy_model_grads_to_main_grads,
//            _unscale_main_grads_and_check_for_nan, _copy_main_params_to_model_params); DeepSpeed, runtime/zero/
//            stage_1_and_2.py (step: unscale_and_clip_grads, bit16_partitions).

#include "sim/plan/kernel.h"
#include "sim/scenario/scenario.h"
#include "sim/training/job.h"

namespace lockstep {

// Of the parameters of `model`, a rank's own, whose gradients and layers are those of `job`. An optimizer of `none`
// takes no time.
KernelWork optimizer_work(const Model& model, const Job& job, const Scenario& scenario);

}  // namespace lockstep
