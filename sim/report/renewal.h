#pragma once

// A run that fails now and then, and goes on from its last checkpoint: where its days go.
//
// Problem:   saving often wastes time saving, saving seldom wastes the work that failures destroy.
// Idea:      failures of a cluster come as a Poisson process. After each one the run is away for the restart
//            (which may fail as well), and then repeats segments of `interval` of work and one checkpoint.
//            What a segment costs on average has a closed form; playing whole histories, failure by failure,
//            adds how much luck matters and checks the algebra.
// Invariant: a history's parts add up to its horizon exactly. Failures are drawn by number alone, so that two
//            intervals are compared under the same ones.
// Cost:      a closed form is a handful of exponentials; a history is constant time a failure.
// Reference: Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974;
//            Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS
//            22(3), 2006.

#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace lockstep {

// 53 days of picoseconds are too short for years between failures.
using Microseconds = Quantity<struct MicrosecondsTag>;

Microseconds in_microseconds(Duration duration);  // rounded up
Microseconds in_microseconds(Horizon horizon);

struct FailureModel {
  Microseconds mtbf;        // of the whole cluster: one node's over the number of nodes
  Microseconds checkpoint;  // what writing one takes
  Microseconds restart;     // from a failure until work goes on
};

// Of the time that passes; together 1.
struct TimeShares {
  double useful = 1;
  double checkpoint = 0;  // also those that failed before they were whole
  double rework = 0;      // work that a failure destroyed
  double restart = 0;
};
TimeShares expected_shares(const FailureModel& model, Microseconds interval);

// The work between two checkpoints that loses least: to first order, and to third.
Microseconds young_interval(const FailureModel& model);
Microseconds daly_interval(const FailureModel& model);

// Below this share of useful time a run gets nowhere, and no interval is worth naming.
bool gets_nowhere(const FailureModel& model, Microseconds interval);

// The times from one failure to the next, the last of which reaches the horizon.
std::vector<Microseconds> draw_lifetimes(Microseconds mtbf, Microseconds horizon, std::uint64_t seed,
                                         std::uint64_t history);

struct History {
  Microseconds useful, checkpoint, rework, restart;
};
// The last lifetime ends with the horizon rather than with a failure: its unsaved work counts.
History play(const FailureModel& model, Microseconds interval, const std::vector<Microseconds>& lifetimes);

}  // namespace lockstep
