#pragma once

// One rank of a run, iteration by iteration: when each begins and ends, when the rank computes, and when it
// communicates.
//
// Problem:   the report, the page and the trace must not tell different times of the same iteration or
//            collective.
// Idea:      the one place where such times are read off a timeline. Iteration 0 is the warm-up; every other
//            begins where the one before ended.
// Invariant: iterations follow each other without a gap.
// Cost:      linear in the ops of the run; what is asked for later, in those of the iteration.

#include <cstddef>
#include <vector>

#include "sim/report/lane_view.h"
#include "sim/run/simulate.h"

namespace lockstep {

class RankView {
 public:
  // `run` must outlive the view.
  RankView(const Run& run, std::size_t representative);

  const Run& run() const { return run_; }
  std::size_t representative() const { return representative_; }
  LaneId compute_lane() const { return run_.lanes.compute[representative_]; }

  std::size_t iterations() const { return ends_.size() - 1; }  // that are measured
  Time start_of(std::size_t iteration) const { return iteration == 0 ? Time{} : ends_[iteration - 1]; }
  Time end_of(std::size_t iteration) const { return ends_[iteration]; }
  Duration length(std::size_t iteration) const { return end_of(iteration) - start_of(iteration); }

  // Of the compute lane.
  std::vector<Stretch> busy(std::size_t iteration) const;
  // While a collective is active or a message under way.
  std::vector<Stretch> communicating(std::size_t iteration) const;

 private:
  const Run& run_;
  std::size_t representative_;
  std::vector<Time> ends_;  // by iteration
};

// The representative whose compute lane ends last, the first of those that tie.
std::size_t critical_representative(const Run& run);

// A collective of one rank: ready to start, on its lane, and done.
struct CollectiveSpan {
  Time ready, start, end;
};
CollectiveSpan span_of(const Run& run, const Communication& communication, std::size_t representative);

}  // namespace lockstep
