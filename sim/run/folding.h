#pragma once

// Which ranks of a scenario's cluster may stand for which.
//
// Problem:   find_symmetry knows which ranks look alike from the links; whether what looks alike also acts
//            alike depends on the strategy, the algorithms, the fidelity and what disturbs.
// Invariant: where in doubt everybody stands for himself.

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "sim/plan/group.h"
#include "sim/run/symmetry.h"
#include "sim/scenario/scenario.h"
#include "sim/training/strategy.h"

namespace lockstep {

// A collective that groups of so many ranks run, by an algorithm other than rings.
struct OtherCollective {
  std::string algorithm;
  CollectiveOp op = CollectiveOp::all_reduce;
  std::uint32_t ranks = 1;

  auto operator<=>(const OtherCollective&) const = default;
};

// Those of groups that span nodes. Ranks that stand for each other are alike in the rings of their groups, and in what
// these send.
struct OtherCollectives {
  std::set<OtherCollective> loading;  // links
  std::set<OtherCollective> latent;   // by messages so small that only how far they go counts

  bool empty() const { return loading.empty() && latent.empty(); }
  bool operator==(const OtherCollectives&) const = default;
};

// What is known before there is a cluster: nobody leads, draws or works for himself, and it is not forbidden.
bool acts_alike(const Scenario& scenario);

// Those of a written plan: ranks that were found to be alike by rings alone are to be found anew by these.
OtherCollectives other_collectives(const Scenario& scenario, std::span<const GroupSet> groups,
                                   std::span<const IterationOps> iterations);

Symmetry find_roles(const Scenario& scenario, const Topology& topology, const Communicator& world,
                    std::span<const GroupSet> groups, const OtherCollectives& others);

}  // namespace lockstep
