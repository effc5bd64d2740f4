#pragma once

// What the device makes of its datasheet: products of square matrices and copies, by size.
//
// Idea:      sizes grow until one call takes long. Every rank runs at the same time, as in training.

#include <cstdint>
#include <string>
#include <vector>

#include "validate/harness/measure/measurement.h"

namespace lockstep::harness {

struct MatmulPoint {
  std::int64_t size = 0;  // rows, columns and inner
  std::string precision;
  CallTimes time = {};
};
struct CopyPoint {
  std::int64_t bytes = 0;
  CallTimes time = {};
};

std::vector<MatmulPoint> measure_matmuls(Bench& bench, Type type);
std::vector<CopyPoint> measure_memory_copies(Bench& bench);

}  // namespace lockstep::harness
