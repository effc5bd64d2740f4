#pragma once

// How all-reduces and computing share a core, from a benchmark of both at once.
//
// Problem:   a library that runs on the rank's own core gets a share of it while it computes, and waits for
//            it before each step of its ring; small all-reduces show the wait, large ones the share.
// Idea:      the simulator plays the benchmark with one pair of constants after another: a scan over all
//            there may be, then a compass search, keep the pair that meets the measured paces best.
// Invariant: constants are rounded as a profile holds them; the search uses only what every machine rounds
//            alike, so that all find the same.
// Cost:      some three hundred plans of fifty collectives for each size.
// Reference: Kolda, Lewis and Torczon, "Optimization by Direct Search" (SIAM Review 2003).

#include <span>

#include "sim/study/bench/interference_bench.h"
#include "sim/study/harness/harness_run.h"

namespace lockstep {

struct CoreUse {
  double share = 0.5;  // of a core that one all-reduce gets at most
  double wait_s = 0;   // before each step
};

// What the benchmark of `point` would be asked: so long a kernel that some two dozen all-reduces end beside
// it.
InterferenceQuery query_of(const InterferencePoint& point);

// `start` says what to begin with. One size alone tells only the share.
CoreUse fit_core_use(const InterferenceBench& bench, std::span<const InterferencePoint> points,
                     const Calibration& calibration, const CoreUse& start);

// The calibration with these constants in it, to four digits.
Calibration with_core_use(Calibration calibration, const CoreUse& use);

}  // namespace lockstep
