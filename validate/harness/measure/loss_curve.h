#pragma once

// The loss of each iteration of a training on samples that are new.
//
// Problem:   iterations that are timed train on samples that stay, and reading a loss makes a device wait.
// Idea:      iterations of their own, from the model's first parameters, whose loss is read once each has ended; their
//            seconds are added up without the reading.
// Invariant: a loss is the mean over ranks, before the iteration's update; with several micro-batches that of the last.
// Cost:      a synchronisation and an exchange an iteration.

#include <cstdint>
#include <vector>

#include "validate/harness/measure/measurement.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness {

struct LossCurve {
  double bucket_cap_mb = 25;
  std::int64_t samples_of_iteration = 0;  // of all ranks
  std::vector<double> loss = {};
  std::vector<double> end =
      {};  // seconds of training until the iteration has ended, of the slowest rank in each
};

// The trainer has made no step.
LossCurve measure_losses(Bench& bench, Trainer& trainer, const ReducerOptions& options,
                         std::int64_t iterations);

}  // namespace lockstep::harness
