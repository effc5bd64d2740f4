#pragma once

// Stretches of a clock and what they have in common.
//
// Problem:   what is waited for overlaps: two collectives, a collective and a copy; it must not be taken out twice.
// Idea:      stretches are merged once; then any stretch is asked how much of it lies within them.
// Invariant: within + outside is the stretch.
// Cost:      a sort to merge; a question is logarithmic.

#include <algorithm>
#include <vector>

#include "sim/load/import/trace_file.h"

namespace lockstep {

struct Interval {
  Nanoseconds start = 0;
  Nanoseconds end = 0;
};

inline Nanoseconds overlap(const Interval& left, const Interval& right) {
  return std::max<Nanoseconds>(0, std::min(left.end, right.end) - std::max(left.start, right.start));
}

// Stretches of a clock, in order and apart.
class Intervals {
 public:
  explicit Intervals(std::vector<Interval> pieces) {
    std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    for (const Interval& piece : pieces) {
      if (piece.end <= piece.start)
        continue;
      if (!merged_.empty() && piece.start <= merged_.back().end)
        merged_.back().end = std::max(merged_.back().end, piece.end);
      else
        merged_.push_back(piece);
    }
    before_.push_back(0);
    for (const Interval& piece : merged_) before_.push_back(before_.back() + piece.end - piece.start);
  }

  // What they have in common with the stretch, in order.
  std::vector<Interval> common(const Interval& stretch) const {
    std::vector<Interval> pieces;
    auto first = std::lower_bound(merged_.begin(), merged_.end(), stretch.start,
                                  [](const Interval& piece, Nanoseconds time) { return piece.end <= time; });
    for (; first != merged_.end() && first->start < stretch.end; ++first)
      if (overlap(*first, stretch) > 0)
        pieces.push_back({std::max(first->start, stretch.start), std::min(first->end, stretch.end)});
    return pieces;
  }

  Nanoseconds within(const Interval& stretch) const {
    return stretch.end > stretch.start ? until(stretch.end) - until(stretch.start) : 0;
  }
  Nanoseconds outside(const Interval& stretch) const {
    return std::max<Nanoseconds>(0, stretch.end - stretch.start) - within(stretch);
  }
  const std::vector<Interval>& pieces() const { return merged_; }

 private:
  // Of all pieces, what lies before that moment.
  Nanoseconds until(Nanoseconds time) const {
    const auto next = std::lower_bound(merged_.begin(), merged_.end(), time,
                                       [](const Interval& piece, Nanoseconds t) { return piece.end <= t; });
    const Nanoseconds before = before_[static_cast<std::size_t>(next - merged_.begin())];
    return before + (next == merged_.end() ? 0 : std::max<Nanoseconds>(0, time - next->start));
  }

  std::vector<Interval> merged_;
  std::vector<Nanoseconds> before_;  // the length of all before each piece, and of all
};

}  // namespace lockstep
