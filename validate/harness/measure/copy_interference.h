#pragma once

// What computing and copies in the device's own memory cost each other.
//
// Problem:   a collective takes memory bandwidth and multiprocessors; a copy takes bandwidth alone, so the two
//            together tell which of them hurts. It needs one GPU and no peers.
// Idea:      forward and backward alone, copies alone, then both at once (beside.h), by marks in both queues.
// Invariant: nothing is measured, and nothing returned, where a device has no second queue (a CPU). Copies
//            that did not cover the computing are a failure with its reason, never a number.

#include <cstdint>
#include <optional>

#include "validate/harness/measure/measurement.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness {

struct CopyInterference {
  std::int64_t bytes = 0;  // of a copy
  double copy_alone = 0;   // seconds of one, back to back
  double copy_beside = 0;
  double compute_alone = 0;  // seconds of one forward and backward
  double compute_beside = 0;
  double covered = 0;  // share of compute_beside in which one ran
};

std::optional<CopyInterference> measure_copy_interference(Bench& bench, Trainer& trainer);

}  // namespace lockstep::harness
