#pragma once

// One rank's lanes seen as stretches of time.
//
// Idea:      what a lane does is a list of stretches; waiting and overlap are sums over such lists.
// Invariant: stretches of a list are in order and do not overlap.

#include <vector>

#include "sim/plan/plan.h"
#include "sim/plan/timeline.h"

namespace lockstep {

struct Stretch {
  Time start;
  Time end;
  OpId op;
};

// Ops of [first, last) on `lane`, in order, those of no length left out.
std::vector<Stretch> busy_stretches(const Plan& plan, const Timeline& timeline, LaneId lane, OpId first,
                                    OpId last);
// The union of the times between a take and its return on `lane`.
std::vector<Stretch> held_stretches(const Plan& plan, const Timeline& timeline, LaneId lane, OpId first,
                                    OpId last);
// When the last of [first, last) on `lane` ends.
Time lane_end(const Plan& plan, const Timeline& timeline, LaneId lane, OpId first, OpId last);

// The time that lies in either of two lists.
std::vector<Stretch> united(std::vector<Stretch> a, const std::vector<Stretch>& b);
Duration total(const std::vector<Stretch>& stretches);
// How much of `a` lies within `b`; both in order and without overlaps.
Duration common(const std::vector<Stretch>& a, const std::vector<Stretch>& b);

}  // namespace lockstep
