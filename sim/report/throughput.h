#pragma once

// What an iteration gets done, and how much of the GPUs' peak that is.
//
// Invariant: padding is no work: it counts neither as tokens nor as FLOPs.

#include <cstdint>
#include <optional>

#include "sim/base/units.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

struct Throughput {
  std::int64_t samples_per_iteration = 0;
  std::optional<std::int64_t> tokens_per_iteration;  // of models that read tokens
  std::optional<double> mfu;                         // unknown where layers state no FLOPs
};

// Of an iteration, forward and twice as many backward and no recomputation: what MFU and published TFLOP/s count.
// Nothing for a model without layers.
std::optional<double> model_flops_of_gpu(const Scenario& scenario);

Throughput find_throughput(const Scenario& scenario, Duration iteration);

// Per second, at the rate of one iteration; nothing for an iteration that takes no time.
std::optional<double> per_second(std::int64_t per_iteration, Duration iteration);

}  // namespace lockstep
