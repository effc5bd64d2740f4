#pragma once

// What a run comes to once it has begun, from how the first of it went.
//
// Problem:   how many messages share their links, and how often their shares are weighed again, depends on when they
//            meet; the same plan takes 40 ns an event where everybody goes in step and 300 ns where nobody does.
// Idea:      the engine counts what it weighs. After the first hundredth of a second, and whenever what is done has
//            doubled, that is scaled up from the messages that have ended to all of them, and to all that is run of
//            this kind.
// Invariant: counts alone, never a clock; a run that is let go on is not changed.
// Cost:      a pass over the plan's ops at each look.

#include "sim/engine/executor.h"
#include "sim/run/run_size.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

class SizeWatch {
 public:
  // Both must outlive it. What the first look at the largest plan finds is put down in `size`: a first iteration that only
  // broadcasts says little of those that follow.
  SizeWatch(const Scenario& scenario, RunSize& size) : scenario_(scenario), size_(size) {}

  // The plan, run under its eyes; what is still to come is like it.
  Timeline run(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes);

 private:
  void look(const RunProgress& progress, double events);
  void expect(double shared, double events);

  const Scenario& scenario_;
  RunSize& size_;
  double events_seen_ = 0;  // of the plan whose sharing is put down
};

}  // namespace lockstep
