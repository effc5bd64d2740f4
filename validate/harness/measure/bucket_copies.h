#pragma once

// What the reducer's copies cost: gradients into a bucket, divided on the way, by number and size.
//
// Idea:      copies go round a memory larger than caches, as gradients of a whole model do. Every rank copies
//            at the same time.

#include <cstdint>
#include <vector>

#include "validate/harness/measure/measurement.h"

namespace lockstep::harness {

std::vector<TensorTiming> measure_bucket_copies(Bench& bench);

}  // namespace lockstep::harness
