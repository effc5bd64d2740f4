#pragma once

// Computing beside a queue of all-reduces, predicted.
//
// Problem:   what collectives and kernels do to each other is fitted to a benchmark of both at once, and what
//            is fitted must be what the simulator makes of it.
// Idea:      one plan holds what the benchmark does: a kernel on every rank, and more all-reduces than end
//            beside it, two in flight. The calibration is given at each question, so that a fit builds the
//            cluster once.
// Invariant: the pace of all-reduces is that of those that end before the kernel, as the harness counts it.
// Cost:      a plan of some fifty collectives a question.

#include <memory>
#include <vector>

#include "sim/network/calibration.h"
#include "sim/run/simulate.h"

namespace lockstep {

struct InterferenceQuery {
  Bytes bytes;       // of one all-reduce
  Duration compute;  // the kernel alone
};

struct InterferenceRow {
  Duration compute;     // the kernel beside all-reduces
  Duration collective;  // one all-reduce beside the kernel
};

class InterferenceBench {
 public:
  explicit InterferenceBench(const Scenario& scenario);

  InterferenceRow predict(const InterferenceQuery& query, const Calibration& calibration) const;

 private:
  const Scenario& scenario_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<Bandwidth> capacities_;  // by link
};

}  // namespace lockstep
