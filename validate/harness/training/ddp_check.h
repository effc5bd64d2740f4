#pragma once

// Is what is timed really training? Three questions, answered before any time is believed.
//
// Idea:      gradients after the reduction are compared with those of one process that has all ranks' samples
//            (one concatenated batch; where BatchNorm makes samples depend on their batch, each rank's
//            micro-batches accumulated in turn), before and after the buckets are rebuilt; the loss has to
//            fall; and every rank has to end with the same parameters, bit by bit.
// Invariant: all ranks come to the same verdict.
// Errors:    tolerances follow from rounding: sums of fp32 in another order differ by some 1e-6 of the largest
//            gradient; numbers that pass through bf16 by 2^-8 of their own, through fp16 by 2^-11.

#include <string>
#include <vector>

#include "validate/harness/measure/measurement.h"
#include "validate/harness/options.h"

namespace lockstep::harness {

struct CheckLine {
  std::string what;
  bool holds = false;
};

// `options` as the measurements would have it: model, precision, optimizer, compression, first bucket cap.
std::vector<CheckLine> check_training(Bench& bench, const Options& options);

// The largest difference a gradient may show, as a share of the largest gradient.
double allowed_difference(Type activations, bool compresses);

}  // namespace lockstep::harness
