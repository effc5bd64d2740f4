#pragma once

// What steps that were measured on one GPU say of a step that was not.
//
// Problem:   a measured time belongs to one model, batch, precision and GPU, and is asked for others.
// Idea:      the model of computing says what work there is on both sides, the measurements how fast that work
//            really is. One step gives one factor for all that is no launch: what is left of it when launches
//            have taken what they take, over what is modelled. Several steps give a factor for each part of the
//            work that they tell apart: least squares of relative errors over factors that are not negative,
//            held together by what is likely (work bound by memory misses its model about as far as matrix
//            work does, a launch costs about what is known).
// Invariant: a step that was measured is met to the picosecond. No device works faster than its peak: below that,
//            launches must have been cheaper. Sums, products and quotients alone, so that every machine finds the
//            same factors.
// Reference: Lawson, Hanson, "Solving Least Squares Problems" (1974), chapter 23.

#include <vector>

#include "sim/compute/work_time.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// One optimizer step of one GPU.
struct StepWork {
  WorkTime modelled;  // waiting for the host is launching
  Duration at_peak;   // the model's FLOPs at the peak of the precision: an MFU of 1
};
StepWork step_work(const Scenario& scenario);

struct StepSample {
  Duration measured;
  StepWork work;
};

// Of steps under different conditions; at least one, none shorter than its `at_peak`.
WorkFactors fit_factors(const std::vector<StepSample>& samples);

Duration transferred(const StepWork& work, const WorkFactors& factors);

// Measured over transferred, minus 1.
double residual(const StepSample& sample, const WorkFactors& factors);

// How far apart two steps are: the doublings of what a micro-batch takes as it is modelled, and one for each thing
// that makes the kernels others.
struct StepSize {
  WorkTime modelled;
  std::int64_t micro_batches = 1;
};
Ratio doublings_between(const StepSize& from, const StepSize& to, std::int64_t other_kernels);

}  // namespace lockstep
