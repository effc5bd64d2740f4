#pragma once

// What the kernels of a plan take.
//
// Idea:      a roofline prices each kernel; the model's own are then multiplied by the user's scale, or by what
//            the anchored step is over what they add up to, and by what the slowest of n ranks is expected to
//            be beyond the mean.
// Invariant: the anchored step is met to the picosecond.

#include <cstdint>
#include <vector>

#include "sim/compute/roofline.h"
#include "sim/plan/plan.h"
#include "sim/scenario/scenario.h"
#include "sim/training/job.h"

namespace lockstep {

Pricing pricing_of(const Scenario& scenario);

// What the model's own kernels are multiplied by: the user's scale, and the anchor over what they add up to.
struct WorkScale {
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
};
WorkScale single_gpu_scale(const Scenario& scenario, const Job& job);

// The kernels of one GPU's step, unscaled.
Duration modelled_step(const Scenario& scenario, const Job& job);

// Kernels become work units (picoseconds of an undisturbed GPU). Scaled work is rounded along the running
// sum, so that the anchored step is met to the picosecond.
void price(Plan& plan, const Scenario& scenario, const WorkScale& scale);

// What the kernels of one micro-batch take on an undisturbed GPU.
struct LayerTime {
  Duration forward, backward, recompute;
};
std::vector<LayerTime> layer_times(const Scenario& scenario, const Job& job);

// Of one socket; where its profile states none: four channels of DDR4-2400, usual in 2017 (our choice).
Bandwidth host_memory_bandwidth(const Scenario& scenario);

}  // namespace lockstep
