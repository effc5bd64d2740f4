#pragma once

// Whole iterations of data-parallel training, by bucket cap: what the simulator is compared with.
//
// Problem:   a machine drifts; measured one after the other, settings would differ by when they were
//            measured.
// Idea:      settings take turns, a block of iterations each, until all have theirs, and with them the step
//            without communication that they are predicted from. Iterations of a block follow each other
//            without a wait; the first of a block brings ranks into step and is not counted.
// Invariant: each setting has its own reducer, in one shared memory; iteration 1, before its buckets are
//            rebuilt, is kept apart.

#include <string>
#include <vector>

#include "validate/harness/measure/measurement.h"
#include "validate/harness/measure/step_timing.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness {

struct BucketTiming {
  std::int64_t bytes = 0;
  std::vector<std::uint32_t> parameters;
  double ready = 0;  // after the backward that is reduced began, as is all below
  double start = 0;
  double end = 0;
};

struct IterationTiming {
  double bucket_cap_mb = 25;
  bool overlaps = true;
  double first_iteration = 0;
  StepStatistics step = {};  // of each iteration the slowest rank's; its parts are medians over ranks
  double overlap_share = 0;  // of the time in which a collective ran: what backward's computing hid
  std::vector<BucketTiming> buckets;
};

struct IterationSettings {
  std::vector<double> bucket_caps_mb;
  std::vector<bool> overlaps;
  bool compresses = false;
  IterationCounts counts;
};

// `beside` is what the iterations are compared with, measured in turns with them; null: nothing.
std::vector<IterationTiming> time_iterations(Bench& bench, Trainer& trainer,
                                             const IterationSettings& settings, TakesTurns* beside = nullptr);

// Part of the union of `intervals` that lies before `until`; 0 where nothing ran.
double hidden_share(std::vector<CollectiveTimes> intervals, double until);

}  // namespace lockstep::harness
