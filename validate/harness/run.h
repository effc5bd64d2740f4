#pragma once

// All measurements of one run, in the order that lets each find a quiet machine.
//
// Idea:      small, steady things first (kernels, the curve), then the step alone, then what it costs beside
//            communication, and whole iterations last: what the others are to explain.
// Invariant: every rank makes every measurement; only rank 0's result is read.

#include "validate/harness/measure/run_file.h"
#include "validate/harness/options.h"

namespace lockstep::harness {

RunFile measure_run(Bench& bench, const Options& options, const World& world, const char* backend);

}  // namespace lockstep::harness
