#pragma once

// From a model and a batch to the work of one rank's step.
//
// Problem:   models count elements and FLOPs per sample; kernels need bytes and FLOPs per launch.
// Idea:      multiply by the batch and by the bytes the precision gives an element. A measured model becomes
//            stretches of backward between the moments at which its gradients were seen to be ready.
// Invariant: the measured stretches add up to the measured forward, backward and optimizer exactly.

#include "sim/scenario/scenario.h"
#include "sim/training/job.h"

namespace lockstep {

Job describe_job(const Scenario& scenario);

// Without what its host spends, which takes as long to find out as all the rest: for who does not ask.
Job describe_work(const Scenario& scenario);

}  // namespace lockstep
