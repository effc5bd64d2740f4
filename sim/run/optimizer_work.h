#pragma once

// What updating the weights moves and launches.
//
// Problem:   one update of a parameter is 12 to 196 bytes and 1 to 23 kernels, by who wrote the optimizer.
// Idea:      for each optimizer three counts: one pass over everything, operators that work in place, and the formula
//            whose results are assigned; lists of tensors share launches.
// Invariant: one pass never moves more than operators, nor these more than the formula.
// Reference: torch/optim (adam.py, sgd.py: _multi_tensor and _single_tensor functions); TensorFlow,
//            core/kernels/training_ops.cc; NVIDIA DeepLearningExamples, TensorFlow BERT, optimization.py (LAMB);
//            MindSpore, AdamWeightDecay.

#include "sim/plan/kernel.h"
#include "sim/scenario/scenario.h"
#include "sim/training/job.h"

namespace lockstep {

// Of the parameters of `model`, a rank's own, whose gradients and layers are those of `job`. An optimizer of `none`
// takes no time.
KernelWork optimizer_work(const Model& model, const Job& job, const Scenario& scenario);

}  // namespace lockstep
