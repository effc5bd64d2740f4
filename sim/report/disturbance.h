#pragma once

// What disturbs a run: ranks that come late, collectives that time out, nodes that fail.
//
// Invariant: waiting is a mean of the measured iterations, over ranks and of the rank that waits longest; a run
//            that timed out is reported by the iterations before.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/roles.h"
#include "sim/report/goodput.h"
#include "sim/run/long_run.h"

namespace lockstep {

// What ranks wait for one another in a mean iteration, because some come late to a collective.
struct Waiting {
  Duration mean;  // over all ranks
  Duration max;   // of the rank that waits longest
};

struct Disturbance {
  Waiting waiting;
  std::optional<TimedOut> timed_out;  // what ended the run before its last iteration
  std::optional<Goodput> goodput;     // where nodes fail
};

// By the accounts of each role over so many iterations.
Waiting mean_waiting(const std::vector<TimeAccount>& accounts, const Roles& roles, std::int64_t iterations);

std::string timeout_warning(const TimedOut& timed_out, Duration allowed);

}  // namespace lockstep
