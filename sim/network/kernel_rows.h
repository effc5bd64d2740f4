#pragma once

// Kernels that follow each other on a lane while nobody else waits for any but the last.
//
// Problem:   two thirds of the ops of a large model are such kernels, and each would be an event that tells nobody
//            anything.
// Idea:      where a kernel is alone on its GPU its end is known when it begins, and so are those of all that follow
//            in its row. They are laid out at once, and only the end of the last is an event; where capacities change
//            before, what is not over yet is laid out again (flow_network.h).
// Invariant: every kernel starts and ends when it would as an event of its own.
// Cost:      a bit an op, found in one pass.

#include <cstdint>
#include <vector>

#include "sim/network/route_table.h"
#include "sim/plan/plan.h"
#include "sim/plan/timeline.h"

namespace lockstep {

class KernelRows {
 public:
  // All must outlive it. `timeline` has a place for every end, and for every start or none.
  KernelRows(const Plan& plan, const RouteTable& routes, Timeline& timeline);

  // Whether the next on the lane follows in the row of `op`.
  bool goes_on(OpId op) const { return op.index < goes_on_.size() && goes_on_[op.index]; }
  OpId next(OpId op) const { return plan_.next_in_lane[op.index]; }
  std::int64_t amount(OpId op) const { return plan_.amount[op.index]; }
  RouteId route(OpId op) const { return RouteId{plan_.path[op.index].index}; }

  Time end(OpId op) const { return timeline_.end[op.index]; }
  void lay_start(OpId op, Time time) {
    if (!timeline_.start.empty())
      timeline_.start[op.index] = time;
  }
  void lay_end(OpId op, Time time) { timeline_.end[op.index] = time; }

  // `op` is over and the next begins.
  void count_passed() { ++passed_; }
  std::size_t passed() const { return passed_; }

 private:
  const Plan& plan_;
  Timeline& timeline_;
  std::vector<bool> goes_on_;  // by op; empty where the order of what happens at one instant may matter
  std::size_t passed_ = 0;
};

}  // namespace lockstep
