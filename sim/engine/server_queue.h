#pragma once

// What a server does one job at a time, or side by side.
//
// Idea:      under a lock jobs take turns, first come first served; without one they share the server's
//            threads (SharedPort). Both answer the same three questions, so their user need not care.
// Invariant: at one instant jobs are served in the order in which they came.

#include <cstdint>
#include <deque>
#include <optional>

#include "sim/base/units.h"
#include "sim/engine/shared_port.h"

namespace lockstep {

struct ServedJob {
  std::uint32_t id = 0;
  Time begin;  // of its service, where it waited for its turn; else the start of time
};

class ServerQueue {
 public:
  // `width`: how many jobs run at full speed side by side, where they do not take turns.
  ServerQueue(bool takes_turns, Ratio width)
      : takes_turns_(takes_turns), side_by_side_(std::max(width, Ratio::one()), any_number) {}

  void start(std::uint32_t job, Duration work, Time now) {
    if (!takes_turns_)
      return side_by_side_.start(job, work, now);
    turns_.push_back({job, work});
    if (turns_.size() == 1)
      serve(now);
  }

  std::optional<Time> next_finish() const {
    if (!takes_turns_)
      return side_by_side_.next_finish();
    return turns_.empty() ? std::nullopt : std::optional(begin_ + turns_.front().work);
  }

  ServedJob finish(Time now) {
    if (!takes_turns_)
      return {side_by_side_.finish(now).id, Time{}};
    const ServedJob served{turns_.front().id, begin_};
    turns_.pop_front();
    serve(now);
    return served;
  }

  bool takes_turns() const { return takes_turns_; }
  std::size_t active() const { return takes_turns_ ? turns_.size() : side_by_side_.active(); }

 private:
  static constexpr std::int64_t any_number = 1'000'000;

  struct Turn {
    std::uint32_t id;
    Duration work;
  };

  void serve(Time now) { begin_ = now; }

  bool takes_turns_;
  SharedPort side_by_side_;
  std::deque<Turn> turns_;
  Time begin_;  // of the job whose turn it is
};

}  // namespace lockstep
