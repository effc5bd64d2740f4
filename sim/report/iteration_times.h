#pragma once

// How long iterations take.
//
// Invariant: the mean of a run is what its iterations take from the end of the warm-up to the last end, over
//            their number; quantiles of a run that is kept are lengths that occurred.

#include <cstdint>
#include <optional>

#include "sim/base/units.h"
#include "sim/report/rank_view.h"

namespace lockstep {

// Beside the mean.
struct IterationTimes {
  Duration first;                     // before buckets are rebuilt
  std::optional<Duration> low, high;  // the band: 10th to 90th percentile of what may be measured
  Duration p5, p50, p95, p99, longest;
};

// Quantiles of the measured iterations, the rest left open: of those that are kept, and of those of a long run.
IterationTimes spread_of(const RankView& view);
IterationTimes spread_of(const LongRun& run);

Duration mean_iteration(const RankView& view);
Duration mean_iteration(const LongRun& run);

}  // namespace lockstep
