#pragma once

// What computing loses beside a copy in the device's own memory.
//
// Problem:   a collective takes memory bandwidth and multiprocessors; a copy takes bandwidth alone, so the two
//            together tell which of them hurts. It needs one GPU and no peers.
// Idea:      forward and backward alone, then beside copies queued to outlast them.
// Invariant: nothing is measured, and nothing returned, where a device has no second queue (a CPU).

#include <cstdint>
#include <optional>

#include "validate/harness/measure/measurement.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness {

struct CopyInterference {
  std::int64_t bytes = 0;    // of a copy
  double copy_alone = 0;     // seconds of one
  double compute_alone = 0;  // seconds of one forward and backward
  double compute_beside = 0;
};

std::optional<CopyInterference> measure_copy_interference(Bench& bench, Trainer& trainer);

}  // namespace lockstep::harness
