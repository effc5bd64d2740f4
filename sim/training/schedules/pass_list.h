#pragma once

// A stage's passes while they are written down.
//
// Problem:   every schedule has a warm-up, a steady order and an end, and each of them is cut short where
//            there are few micro-batches.
// Idea:      a schedule names kinds of passes alone; each takes the next micro-batch of its chunk, and is
//            left out once there is none.
// Invariant: micro-batches ascend in each kind of pass of each chunk. A schedule that names every kind often
//            enough is complete, and cutting whole micro-batches off its end leaves what waits for what.

#include <array>
#include <vector>

#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {

class PassList {
 public:
  explicit PassList(const PipelineShape& shape);

  void add(PassKind kind, std::int64_t chunk = 0);
  void add_times(std::int64_t times, PassKind kind, std::int64_t chunk = 0);
  // The pass that was added last belongs to the next.
  void join_next() { passes_.back().joins_next = true; }
  std::vector<Pass> passes() && { return std::move(passes_); }

 private:
  static constexpr std::size_t kinds = 4;

  std::int64_t micro_batches_;
  std::vector<std::array<std::int64_t, kinds>> next_;  // micro-batch, by chunk
  std::vector<Pass> passes_;
};

}  // namespace lockstep
