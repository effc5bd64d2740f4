#pragma once

// The account of a whole run, iteration by iteration: what a report adds up, and a trace draws.
//
// Idea:      one pass of the time keeper over all iterations. Its sums are the report's, its spans the trace's,
//            so that neither can charge a stretch of time to something else than the other.
// Cost:      linear in the ops of the run; memory for the spans that are kept.

#include <cstddef>
#include <vector>

#include "sim/run/simulate.h"
#include "sim/run/time_account.h"

namespace lockstep {

struct RunAccount {
  std::vector<TimeAccount> totals;           // by representative, of the measured iterations
  std::vector<std::vector<TimeSpan>> spans;  // by representative, of the iterations that are kept
};

// With the spans from iteration `first_kept` on; 0 is the warm-up.
RunAccount account_of(const Run& run, std::size_t first_kept);

}  // namespace lockstep
