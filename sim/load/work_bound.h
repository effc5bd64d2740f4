#pragma once

// What the kernels of layers compute and move at most.
//
// Problem:   whether a scenario can be simulated must be known before its kernels are described and priced.
// Idea:      layers' own counts, every element as wide as any is, and all that a framework, an optimizer or a
//            library may add to them.
// Invariant: no kernel that `describe_job` makes of the layers has more of anything.

#include "sim/scenario/scenario.h"

namespace lockstep {

struct Work {
  double flops = 0;
  double bytes = 0;
  double stated_seconds = 0;
};

// Of one micro-batch of the whole model.
Work work_bound(const ModelUse& use);

// As many as stand in the model, whether layers have them or not.
double element_count(const Model& model);

}  // namespace lockstep
