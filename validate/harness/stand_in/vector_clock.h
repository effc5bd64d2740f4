#pragma once

// What has happened before what.
//
// Idea:      every stream and every host thread is a line of time with a counter of its own; a clock says how
//            far along each line its owner has seen. An event happened before another where the other's clock
//            has seen it.
// Cost:      one number a line.
// Reference: Mattern, "Virtual time and global states of distributed systems", 1989; Flanagan and Freund,
//            "FastTrack", PLDI 2009.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::harness::stand_in {

// One event on one line of time.
struct Moment {
  std::uint32_t line = 0;
  std::uint32_t count = 0;
};

class VectorClock {
 public:
  bool has_seen(Moment moment) const {
    return moment.line < counts_.size() && counts_[moment.line] >= moment.count;
  }
  void join(const VectorClock& other) {
    if (counts_.size() < other.counts_.size())
      counts_.resize(other.counts_.size(), 0);
    for (std::size_t line = 0; line < other.counts_.size(); ++line)
      counts_[line] = std::max(counts_[line], other.counts_[line]);
  }
  // The next event on `line`, which this clock has seen from now on.
  Moment advance(std::uint32_t line) {
    if (counts_.size() <= line)
      counts_.resize(line + 1, 0);
    return {.line = line, .count = ++counts_[line]};
  }

 private:
  std::vector<std::uint32_t> counts_;
};

}  // namespace lockstep::harness::stand_in
