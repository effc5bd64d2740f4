#pragma once

// A scenario's cluster as links, rings and groups, and which of its ranks are alike.
//
// Idea:      the topology comes first, the library's rings are searched on it, a strategy may cut it into
//            groups, and then it is known who may stand for whom (folding.h).
// Invariant: it holds nothing of a model or a plan.
// Cost:      linear in links and ranks; expected_size knows what it will be from two of its nodes.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/network/ring_search.h"
#include "sim/network/routing.h"
#include "sim/plan/group.h"
#include "sim/run/run_size.h"
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

// Of a large cluster before it is built, as far as two nodes tell: machines are copies of one another, and so
// are their parts of a ring. Nothing where clusters are small.
RunSize expected_size(const Scenario& scenario);

std::unique_ptr<Cluster> build_cluster(const Scenario& scenario);

const Strategy& strategy_of(const Scenario& scenario);

// One thread of the host copies, adds and sends all that a rank sends: its core is not the GPU's.
bool reduces_on_hosts(const Scenario& scenario);

}  // namespace lockstep
