#pragma once

// How far ahead FSDP gathers: its queue of free events.
//
// Problem:   gathers that run ahead of the kernels fill the memory with units nobody needs yet.
// Idea:      each unit that is freed leaves an event; a gather first takes the oldest one and waits for it,
// if
//            at least `most_in_flight` are there.
// Invariant: events are taken in the order they were left.
// Reference: torch/distributed/fsdp/_limiter_utils.py, _FreeEventQueue.

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "sim/plan/plan.h"

namespace lockstep {

class GatherLimit {
 public:
  // 0: no limit.
  explicit GatherLimit(std::size_t most_in_flight) : most_in_flight_(most_in_flight) {}

  void freed(std::vector<OpId> by_representative) { freed_.push_back(std::move(by_representative)); }

  // What the next gather waits for; empty: nothing.
  std::vector<OpId> gate() {
    if (most_in_flight_ == 0 || freed_.size() < most_in_flight_)
      return {};
    std::vector<OpId> oldest = std::move(freed_.front());
    freed_.pop_front();
    return oldest;
  }

 private:
  std::size_t most_in_flight_;
  std::deque<std::vector<OpId>> freed_;
};

}  // namespace lockstep
