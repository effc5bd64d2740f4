#pragma once

// What computing and communication cost each other.
//
// Problem:   a collective takes cores, memory and GPU multiprocessors from backward, and the other way round.
// Idea:      forward and backward alone, all-reduces alone (two in flight on Gloo, as many as its threads work
//            on), then both at once (beside.h).
// Invariant: all ranks compute and communicate at the same time, equally often. A size whose all-reduces did
//            not run throughout is a failure with its reason, never a number.

#include <cstdint>
#include <vector>

#include "validate/harness/measure/measurement.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness {

struct Interference {
  std::int64_t bytes = 0;
  double compute_alone = 0;  // seconds of one forward and backward
  double compute_beside = 0;
  double collectives = 0;       // completed during one compute_beside
  double collective_alone = 0;  // seconds per all-reduce, back to back
  double collective_beside = 0;
  double covered = 0;  // share of compute_beside in which one ran
};

std::vector<Interference> measure_interference(Bench& bench, Trainer& trainer,
                                               const std::vector<std::int64_t>& sizes);

}  // namespace lockstep::harness
