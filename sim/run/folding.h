#pragma once

// Which ranks of a scenario's cluster may stand for which.
//
// Problem:   find_symmetry knows which ranks look alike from the links; whether what looks alike also acts
//            alike depends on the strategy, the algorithms, the fidelity and what disturbs.
// Invariant: where in doubt everybody stands for himself.

#include <set>
#include <span>
#include <string>
#include <utility>

#include "sim/plan/group.h"
#include "sim/run/symmetry.h"
#include "sim/scenario/scenario.h"
#include "sim/training/strategy.h"

namespace lockstep {

// The algorithms other than rings that collectives of groups go by between nodes. Ranks that stand for each other are
// alike in the rings of their groups, and in what these send.
struct OtherAlgorithms {
  using Ops = std::set<std::pair<std::string, CollectiveOp>>;
  Ops loading;  // links
  Ops latent;   // by messages so small that only how far they go counts

  bool empty() const { return loading.empty() && latent.empty(); }
  bool operator==(const OtherAlgorithms&) const = default;
};

// What is known before there is a cluster: nobody leads, draws or works for himself, and it is not forbidden.
bool acts_alike(const Scenario& scenario);

// Those by which a written plan goes: ranks that were found to be alike by rings alone are to be found anew by these.
OtherAlgorithms other_algorithms(const Scenario& scenario, std::span<const GroupSet> groups,
                                 std::span<const IterationOps> iterations);

Symmetry find_roles(const Scenario& scenario, const Topology& topology, const Communicator& world,
                    std::span<const GroupSet> groups, const OtherAlgorithms& others);

}  // namespace lockstep
