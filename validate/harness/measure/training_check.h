#pragma once

// Is what is timed really training? Three questions, answered before any time is believed.
//
// Idea:      gradients after the reduction are compared with those of one process that has all ranks' samples
//            (one concatenated batch; where BatchNorm makes samples depend on their batch, each rank's
//            micro-batches accumulated in turn), before and after the buckets are rebuilt; the loss has to
//            fall; and every rank has to end with the same parameters, bit by bit.
// Invariant: all ranks come to the same verdict.
// Errors:    sums of fp32 in another order differ by some 1e-6 of the largest gradient. Where factors of products
//            are rounded to a narrower format, such a difference may round one up here and down there: then
//            they are one unit in the last place apart, 2 x 2^-11 in fp16 and tf32 (10 bits of fraction), 2 x
//            2^-8 in bf16 (7 bits), and a product of two such factors twice that. Buckets that travel as bf16 are
//            rounded once a rank and once more, by 2^-8 each at most.
//            In fp16 gradients are compared at the largest loss scale that lets them be finite, for training
//            would skip steps at a larger one.

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
  std::string precision = "fp32";  // of products: activations in fp32 may be multiplied in tf32
};

std::vector<CheckLine> check_training(Bench& bench, const CheckSettings& settings);

// The largest difference a gradient may show, as a share of the largest gradient.
double allowed_difference(const CheckSettings& settings, int ranks);

}  // namespace lockstep::harness
