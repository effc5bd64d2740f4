#pragma once

// The life of a scenario after load: write what happens, find out when.
//
// Start reading at simulate() in simulate.cpp: one call per step of the way.

#include <memory>

#include "sim/network/routing.h"
#include "sim/plan/timeline.h"
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

struct Simulation {
  Job job;
  std::unique_ptr<Cluster> cluster;  // routes and reports look things up in it
  Run first;                         // iteration 1, before buckets are rebuilt
  Run steady;                        // one warm-up, then `simulation.iterations`
};

std::unique_ptr<Cluster> build_cluster(const Scenario& scenario);

Simulation simulate(const Scenario& scenario);

// The whole single-GPU step without wrapper or communication: what `single_gpu_iteration` is about.
Duration single_gpu_time(const Scenario& scenario);

}  // namespace lockstep
