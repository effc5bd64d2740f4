#pragma once

// Is what is timed really training? Three questions, answered before any time is believed.
//
// Idea:      gradients after the reduction are compared with those of one process that has all ranks' samples
//            (one concatenated batch; where BatchNorm makes samples depend on their batch, each rank's
//            micro-batches accumulated in turn), before and after the buckets are rebuilt; the loss has to
//            fall; and every rank has to end with the same parameters, bit by bit.
// Invariant: all ranks come to the same verdict.
// Errors:    tolerances follow from rounding: sums of fp32 in another order differ by some 1e-6 of the
//            largest gradient; activations in bf16 by a few 2^-8, in fp16 by a few 2^-11; buckets that travel
//            as bf16 are rounded once a rank and once more, by 2^-8 each at most.

#include <string>
#include <vector>

#include "validate/harness/measure/measurement.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness {

struct CheckLine {
  std::string what;
  bool holds = false;
};

struct CheckSettings {
  ModelSpec model;
  OptimizerOptions optimizer;
  std::int64_t micro_batches = 1;
  ReducerOptions reducer;
};

std::vector<CheckLine> check_training(Bench& bench, const CheckSettings& settings);

// The largest difference a gradient may show, as a share of the largest gradient.
double allowed_difference(Type activations, bool compresses, int ranks);

}  // namespace lockstep::harness
