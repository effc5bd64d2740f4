#pragma once

// What failures leave of a run over days: useful work, and where the rest of the time goes.
//
// Problem:   a cluster that computes well may still spend its days saving, repeating and restarting.
// Idea:      the strategy says what a checkpoint holds and who writes it, the simulation how long an
//            iteration takes; renewal.h does the rest, for the interval asked for and for the best ones.
// Invariant: a checkpoint stops training while it is written: every iteration is charged its part of one. Its
//            bytes cross the storage's bandwidth together, and a GPU's PCIe link each writer's own.

#include <string>

#include "sim/report/renewal.h"
#include "sim/scenario/scenario.h"
#include "sim/training/job.h"

namespace lockstep {

struct Checkpointing {
  Bytes bytes;            // of one checkpoint
  Duration time;          // to write it
  Microseconds interval;  // of useful work from one to the next
  FailureModel failures;
};
// `iteration`: of useful work alone. The best interval is never shorter than it.
Checkpointing plan_checkpoints(const Scenario& scenario, const Job& job, Duration iteration);

// What each iteration pays for the checkpoints, rounded up.
Duration amortised(const Checkpointing& checkpointing, Duration iteration);

struct IntervalChoice {
  Microseconds interval;
  double fraction = 0;  // of the time that is useful with it, expected
};

struct Goodput {
  Horizon horizon;
  Checkpointing checkpointing;
  double expected_failures = 0;
  TimeShares expected;
  IntervalChoice young, daly, simulated;
  std::int64_t histories = 0;
  double simulated_mean = 0;
  double simulated_p5 = 0, simulated_p50 = 0, simulated_p95 = 0;
};
// Throws ConfigError where the run would get nowhere.
Goodput find_goodput(const Scenario& scenario, const Job& job, Duration iteration);

}  // namespace lockstep
