#pragma once

// The life of a scenario after load: write what happens, find out when.
//
// Start reading at simulate() in simulate.cpp: one call per step of the way.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/run/cluster_store.h"
#include "sim/run/disturbance.h"
#include "sim/run/long_run.h"
#include "sim/run/pricing.h"
#include "sim/run/run_plan.h"
#include "sim/run/run_size.h"
#include "sim/run/update_run.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// With jitter, or more iterations than one plan should hold, `steady` is a short run for the details and
// `long_run` has the figures of all iterations.
struct Simulation {
  Job job;
  LentCluster cluster;  // routes and reports look things up in it
  Run first;            // iteration 1, before buckets are rebuilt; empty: it is the warm-up
  Run steady;           // one warm-up, then `simulation.iterations`
  std::optional<LongRun> long_run;
  std::optional<TimedOut> timed_out;  // ended the run; what is reported are the iterations before
  std::vector<std::string> notes;     // what was decided in rehearsals
  RunSize size;                       // as it was known before the runs
  std::optional<UpdateRun> updates;   // of asynchronous strategies; the runs above are then of one worker
};

struct SimulationOptions {
  // Iteration 1 is its own plan, which only reports look at.
  bool with_first = true;
  ClusterStore* clusters = nullptr;  // which outlives the simulation; none: it builds its own
  // How often the steady iterations will be run again where computing, the host that the GPU waits for, and messages
  // cost otherwise: its size includes that.
  int computing_ends = 0;
  int host_ends = 0;
  int message_ends = 0;
};

// Whether iteration 1 has a plan of its own. That of a program, or of a model that is cut, is the warm-up, without the weights that
// copies send each other before it.
bool has_first_iteration(const Scenario& scenario);

Simulation simulate(const Scenario& scenario, const SimulationOptions& options = {});

}  // namespace lockstep
