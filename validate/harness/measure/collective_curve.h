#pragma once

// How long an all-reduce takes by its size, with nothing beside it: nccl-tests' all_reduce_perf, in fp32.
//
// Idea:      ranks meet before each; a time is from the start of the call until its result may be used, the
//            slowest rank's.
// Cost:      2 calls to warm up, then at most about 2 s a size, 200 calls, and no fewer than 3.

#include <cstdint>
#include <vector>

#include "validate/harness/measure/measurement.h"

namespace lockstep::harness {

struct CollectivePoint {
  std::int64_t bytes = 0;  // of one rank's buffer
  Statistics time;
};

std::vector<CollectivePoint> measure_collective_curve(Bench& bench, std::int64_t most_bytes);

}  // namespace lockstep::harness
