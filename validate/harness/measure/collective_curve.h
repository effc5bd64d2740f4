#pragma once

// How long an all-reduce takes by its size, in fp32, with nothing beside it.
//
// Idea:      ranks meet before each and before each row (measurement.h); the slowest rank's time counts. From
//            idle, a time is from the start of the call until its result may be used; back to back, it is
//            nccl-tests' in-place time but for the host's clock.
// Cost:      2 calls to warm up, then at most about 2 s a size, 200 calls, and no fewer than 3; on a GPU as
//            much again in rows.

#include <cstdint>
#include <vector>

#include "validate/harness/measure/measurement.h"

namespace lockstep::harness {

struct CollectivePoint {
  std::int64_t bytes = 0;  // of one rank's buffer
  CallTimes time = {};
};

std::vector<CollectivePoint> measure_collective_curve(Bench& bench, std::int64_t most_bytes);

}  // namespace lockstep::harness
