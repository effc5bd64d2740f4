#pragma once

// The life of a scenario after load: write what happens, find out when.
//
// Start reading at simulate() in simulate.cpp: one call per step of the way.

#include <memory>
#include <optional>

#include "sim/network/ring_search.h"
#include "sim/network/routing.h"
#include "sim/plan/timeline.h"
#include "sim/run/long_run.h"
#include "sim/run/run_size.h"
#include "sim/run/update_run.h"
#include "sim/scenario/scenario.h"
#include "sim/training/strategy.h"

namespace lockstep {

// The cluster as links and rings, and which of its ranks are alike.
struct Cluster {
  Topology topology;
  Communicator world;
  Symmetry symmetry;
  std::vector<GroupSet> groups;  // that the strategy runs collectives in beside the world
};

// One plan that has been run. `iterations` tells where each iteration stands in it.
struct Run {
  Plan plan;
  Timeline timeline;
  RankLanes lanes;
  std::vector<IterationOps> iterations;
  RouteTable routes;
};

// With jitter, or more iterations than one plan should hold, `steady` is a short run for the details and
// `long_run` has the figures of all iterations.
struct Simulation {
  Job job;
  std::unique_ptr<Cluster> cluster;  // routes and reports look things up in it
  Run first;                         // iteration 1, before buckets are rebuilt
  Run steady;                        // one warm-up, then `simulation.iterations`
  std::optional<LongRun> long_run;
  std::optional<TimedOut> timed_out;  // ended the run; what is reported are the iterations before
  std::vector<std::string> notes;     // what was decided in rehearsals
  RunSize size;                       // as it was known before the runs
  std::optional<UpdateRun> updates;   // of asynchronous strategies; the runs above are then of one worker
};

// Of a large cluster before it is built, as far as two nodes tell: machines are copies of one another, and so
// are their parts of a ring. Nothing where clusters are small.
RunSize expected_size(const Scenario& scenario);

std::unique_ptr<Cluster> build_cluster(const Scenario& scenario);

Simulation simulate(const Scenario& scenario);

// What the kernels of one micro-batch take on an undisturbed GPU.
struct LayerTime {
  Duration forward, backward, recompute;
};
std::vector<LayerTime> layer_times(const Scenario& scenario, const Job& job);

// How much slower than the others each rank is, in parts per million.
std::vector<std::int64_t> slowdown_by_rank(const Scenario& scenario);
// How the speed of ranks varies from one iteration to the next.
Jitter jitter_of(const Scenario& scenario);
// Of one socket; where its profile states none: four channels of DDR4-2400, usual in 2017 (our choice).
Bandwidth host_memory_bandwidth(const Scenario& scenario);

// The whole single-GPU step without wrapper or communication: what `single_gpu_iteration` is about.
Duration single_gpu_time(const Scenario& scenario);
// What of that step is done on a rank's compute lane in a mean measured iteration: all forwards and
// backwards, and of the optimizer as much as the strategy leaves to the rank.
Duration work_of_rank(const Scenario& scenario, const Simulation& simulation, LaneId lane);

}  // namespace lockstep
