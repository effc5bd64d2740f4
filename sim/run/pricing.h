#pragma once

// What the kernels of a plan take.
//
// Idea:      the model of computing prices each kernel; the parts of the model's own are multiplied by what was
//            measured of them, their sum by the anchored step over what they add up to, all by the user's scale,
//            and each part by what the slowest of n ranks is expected to take beyond the mean.
// Invariant: the anchored step is met to the picosecond.

#include <cstdint>
#include <vector>

#include "sim/compute/kernel_time.h"
#include "sim/plan/plan.h"
#include "sim/scenario/scenario.h"
#include "sim/training/job.h"

namespace lockstep {

// Without a job's products: of what has none.
Pricing pricing_of(const Scenario& scenario);
Pricing pricing_of(const Scenario& scenario, const Job& job);

// The kernels of one GPU's step with all its micro-batches, unscaled.
WorkTime modelled_step(const Scenario& scenario, const Job& job);

// What the model's own kernels are multiplied by: each part by its factor, and then the whole.
struct WorkScale {
  WorkFactors factors;
  Ratio device_scale = Ratio::one();
  Fraction whole;

  // A kernel before `whole`, which is taken of sums: what is rounded once is met exactly.
  Duration weigh(const WorkTime& time) const;
  KernelBound bound(const WorkTime& time) const;
};
WorkScale single_gpu_scale(const Scenario& scenario, const Job& job);

// The weighed kernels of one GPU's step.
Duration weighed_step(const Scenario& scenario, const Job& job, const WorkScale& scale);

// Each kernel on a path that says what bounds it, where that matters beside collectives. Once, before paths are
// routed: paths are added. What scales all computing alike changes no bound.
void bind_kernels(Plan& plan, const Scenario& scenario, const Job& job);

// Kernels become work units (picoseconds of an undisturbed GPU). Scaled work is rounded along the running sum, so
// that the anchored step is met to the picosecond. May be done again at other prices.
void price(Plan& plan, const Scenario& scenario, const Job& job);

// What the kernels of one micro-batch take on an undisturbed GPU.
struct LayerTime {
  Duration forward, backward, recompute;
};
std::vector<LayerTime> layer_times(const Scenario& scenario, const Job& job);

// Of one socket; where its profile states none: four channels of DDR4-2400, usual in 2017 (our choice).
Bandwidth host_memory_bandwidth(const Scenario& scenario);

}  // namespace lockstep
