#pragma once

// What the microbenchmarks of one harness run say, each as one figure in closed form.
//
// Problem:   training iterations are what a calibration is judged by, so it must come from elsewhere.
// Idea:      a ring all-reduce of V sent bytes in K steps takes K a + V p, so the small sizes tell a and the
//            large ones p. What computing loses beside all-reduces is core time: of T beside and T0 alone,
//            (T - T0) / V is what a byte takes; where that slows the all-reduces down as well, the part of the
//            core they got is their limit. Copies take tensors x t + bytes / b.
// Invariant: medians over points, so that one disturbed point moves nothing; a figure that the run cannot tell
//            is empty and there is a sentence why.
// Reference: Hockney 1994 (the line); progressive filling of the core as in sim/network/routing.cpp.

#include <optional>
#include <string>
#include <vector>

#include "sim/study/harness/harness_run.h"

namespace lockstep {

// Seconds, and seconds a byte.
struct RunFigures {
  std::optional<double> step_s;           // of a ring step, beyond its bytes
  std::optional<double> wire_per_byte_s;  // of a large all-reduce's sent bytes
  std::optional<double> copy_per_tensor_s;
  std::optional<double> copy_per_byte_s;
  std::optional<double> core_per_byte_s;  // core time of a sent byte
  std::optional<double> core_share;       // what all-reduces, two in flight, got of a core that held them up
  double core_taken = 0;                  // the most they were seen to take, limited or not
  std::optional<double> rank_variation;   // of one rank's step alone: standard deviation over mean
  std::optional<double> slowdown;         // of computing beside all-reduces, as a factor
  std::vector<std::string> gaps;          // what the run cannot tell, one sentence each
};

RunFigures figures_of(const HarnessRun& run);

// What a rank's link carries one way: the run's goodput; where nobody told it, what all-reduces level off at
// without the time a byte that the calibration adds to the wire's own. Throws ConfigError where neither is
// known.
Bandwidth link_of(const HarnessRun& run, const RunFigures& figures, double unhidden_per_byte_s = 0);

}  // namespace lockstep
