#pragma once

// Tell classes apart: each has a pattern of its own, seen through noise as strong as the pattern.
//
// Idea:      an image's pattern is constant over square cells, so that it survives strides and pooling; the
//            inputs of an MLP are an image of one row whose cells are single numbers.
// Invariant: pattern and noise both have deviation 1; classes are equally likely.

#include "validate/harness/models/task.h"

namespace lockstep::harness {

class PatternTask : public Task {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::int64_t height = 1;
    std::int64_t width = 1;
    std::int64_t channels = 1;
    std::int64_t classes = 2;
    std::int64_t cell = 1;  // pixels along a side
  };
  explicit PatternTask(const Options& options) : options_(options) {}

  TaskShape shape() const override;
  void write(std::int64_t sample, const HostSample& to) const override;

 private:
  float pattern(std::uint64_t wanted_class, std::int64_t element) const;

  Options options_;
};

}  // namespace lockstep::harness
