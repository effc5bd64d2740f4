#pragma once

// Something to learn: samples with answers, made up but learnable.
//
// Problem:   a loss that falls shows that a training step is right; real data sets are large and elsewhere.
// Idea:      a sample is a pure function of the seed and its number in the whole data set: nothing is stored,
//            and a batch is the same however it is split over ranks.
// Invariant: every sample has the same number of inputs and of targets. Inputs are numbers or tokens.

#include <cstdint>
#include <span>

#include "validate/harness/device/tensor.h"

namespace lockstep::harness {

struct TaskShape {
  Type input_type = Type::fp32;  // fp32, or int32 for tokens
  std::int64_t inputs = 0;       // of a sample
  std::int64_t targets = 0;      // likewise
};

// Where a sample goes; of `numbers` and `tokens` the one that the task does not make is empty.
struct HostSample {
  std::span<float> numbers;
  std::span<std::int32_t> tokens;
  std::span<std::int32_t> targets;
};

class Task {
 public:
  virtual ~Task() = default;
  virtual TaskShape shape() const = 0;
  virtual void write(std::int64_t sample, const HostSample& to) const = 0;
};

}  // namespace lockstep::harness
