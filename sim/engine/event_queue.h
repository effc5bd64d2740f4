#pragma once

// The queue of everything that is still to happen.
//
// Problem:   a simulation pops events in time order and pushes only into the future; a binary heap
//            pays a logarithm for an order it does not need, and needs sequence numbers to be stable.
// Idea:      a monotone radix heap: an event lies in the bucket of the highest bit in which its time
//            differs from the present. Advancing empties the first bucket in use and spreads its events
//            over the lower ones. Equal times always share a bucket, so events of one instant come out
//            in the order they were pushed.
// Invariant: nothing is pushed into the past (checked). There is no peek: looking ahead would move the
//            base of the buckets and misfile later pushes.
// Cost:      amortised constant per event (at most 63 moves, 2-4 in practice); 16 bytes an event.
// Reference: Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem" (1990).

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/units.h"

namespace lockstep {

struct Event {
  std::int64_t time;
  std::uint32_t subject;
  std::uint32_t tag;
};

class EventQueue {
 public:
  void push(Time time, std::uint32_t subject, std::uint32_t tag) {
    const std::int64_t at = time.since_start().picoseconds();
    LOCKSTEP_CHECK(at >= now_, "an event lies at or after the present");
    const std::size_t index = bucket_of(at);
    buckets_[index].push_back({at, subject, tag});
    occupied_ |= index == 0 ? 0 : std::uint64_t{1} << index;
    ++pending_;
  }

  // Moves to the next instant at which something happens; stays when something was added to the present
  // one. False when nothing is left.
  bool advance();

  // Takes the next event of the present instant. False when the instant is over.
  bool next(Event& event) {
    auto& present = buckets_[0];
    if (taken_ == present.size()) {
      present.clear();
      taken_ = 0;
      return false;
    }
    event = present[taken_++];
    --pending_;
    return true;
  }

  Time now() const { return Time{} + Duration::picoseconds(now_); }
  std::size_t pending() const { return pending_; }

 private:
  std::size_t bucket_of(std::int64_t time) const {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(time ^ now_)));
  }

  std::array<std::vector<Event>, 64> buckets_;
  std::uint64_t occupied_ = 0;  // bit i: bucket i may hold events; bucket 0 is tracked by taken_
  std::size_t taken_ = 0;
  std::size_t pending_ = 0;
  std::int64_t now_ = 0;
};

}  // namespace lockstep
