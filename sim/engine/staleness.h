#pragma once

// Staleness: how many updates were applied between the version of the weights that a worker read and the
// moment at which its own update is applied.
//
// StalenessCounts: how often each value occurred. One counter a value: what occurs is bounded by the workers
// times how much slower the slowest is.
//
// StalenessBound: the rule that keeps every update's staleness at or below a bound.
// Problem:   a worker that has read cannot be made fresher; if others may always apply, it grows stale.
// Idea:      who has read and not applied stands in the order of reading. If all applied in this order, each
//            would be as stale as there are others before it; its slack is what the bound leaves beyond that.
//            Whoever applies out of order takes one from the slack of everybody before it.
// Invariant: no slack is below zero, so no update exceeds the bound; the oldest may always apply, so nobody
//            waits for ever. At most bound + 1 workers are on their way at a time.
// Cost:      linear in those on their way, a few bytes each, side by side in memory.
// Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server" (NIPS 2013)
// bound something else: how many of its own iterations a worker may be ahead of the slowest.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/units.h"

namespace lockstep {

class StalenessCounts {
 public:
  void add(std::int64_t staleness) {
    const auto index = static_cast<std::size_t>(staleness);
    if (index >= counts_.size())
      counts_.resize(index + 1);
    ++counts_[index];
    ++total_;
    sum_ += staleness;
  }

  std::int64_t total() const { return total_; }
  std::int64_t sum() const { return sum_; }
  std::int64_t maximum() const { return static_cast<std::int64_t>(counts_.size()) - 1; }
  // How often staleness 0, 1, ... occurred.
  const std::vector<std::int64_t>& counts() const { return counts_; }

  // The value that stands at this part of the way through the sorted values, of which there is at least one.
  std::int64_t quantile(Ratio part) const {
    LOCKSTEP_CHECK(total_ > 0, "quantiles are of something");
    const std::int64_t rank = scaled_up(total_ - 1, part);
    std::int64_t below = 0;
    std::size_t value = 0;
    while ((below += counts_[value]) <= rank) ++value;
    return static_cast<std::int64_t>(value);
  }

 private:
  std::vector<std::int64_t> counts_;
  std::int64_t total_ = 0;
  std::int64_t sum_ = 0;
};

class StalenessBound {
 public:
  explicit StalenessBound(std::int64_t bound) : bound_(bound) {}

  bool may_read() const { return on_their_way() <= bound_; }

  void read(std::uint32_t worker) {
    LOCKSTEP_CHECK(may_read(), "who reads will find room to apply");
    const std::int64_t slack = bound_ - on_their_way();
    readers_.push_back({worker, slack, false});
  }

  // Its gradient has come and may be applied as soon as nobody before it would exceed the bound.
  void arrive(std::uint32_t worker) {
    const auto is_it = [worker](const Reader& reader) { return reader.worker == worker; };
    std::find_if(readers_.begin(), readers_.end(), is_it)->has_arrived = true;
  }

  // The next worker whose update is applied from now on, the oldest first; until `applied` it counts.
  std::optional<std::uint32_t> admit() {
    for (std::size_t place = 0; place < readers_.size(); ++place) {
      if (readers_[place].has_arrived)
        return take(place);
      if (readers_[place].slack == 0)
        break;
    }
    return std::nullopt;
  }

  void applied() { --applying_; }

 private:
  struct Reader {
    std::uint32_t worker;
    std::int64_t slack;
    bool has_arrived;
  };

  std::int64_t on_their_way() const { return static_cast<std::int64_t>(readers_.size()) + applying_; }

  std::uint32_t take(std::size_t place) {
    const std::uint32_t worker = readers_[place].worker;
    for (std::size_t before = 0; before < place; ++before) --readers_[before].slack;
    readers_.erase(readers_.begin() + static_cast<std::ptrdiff_t>(place));
    ++applying_;
    return worker;
  }

  std::int64_t bound_;
  std::int64_t applying_ = 0;
  std::vector<Reader> readers_;  // that are not yet applying, in the order in which they read
};

}  // namespace lockstep
