#pragma once

// Which ranks of a scenario's cluster may stand for which.
//
// Problem:   find_symmetry knows which ranks look alike from the links; whether what looks alike also acts
//            alike depends on the strategy, the algorithms, the fidelity and what disturbs.
// Invariant: where in doubt everybody stands for himself.

#include <cstdint>
#include <span>
#include <string>

#include "sim/plan/group.h"
#include "sim/run/symmetry.h"
#include "sim/scenario/scenario.h"
#include "sim/training/strategy.h"

namespace lockstep {

// By what ranks that may stand for each other are told to be alike.
enum class RoleDetail : std::uint8_t {
  rings,     // of the groups that they are in
  all_flows  // and what other algorithms send between nodes
};

// Whether all ranks do alike in this algorithm; one that is not known is none of ours to doubt.
bool folds(const std::string& algorithm);

// What is known before there is a cluster: nobody leads, draws or works for himself, and it is not forbidden.
bool acts_alike(const Scenario& scenario);

// Whether some collective of groups that span nodes went another way than their rings, though alike ranks were found
// by their rings alone: they are then to be found anew by all flows.
bool needs_finer_roles(const Scenario& scenario, std::span<const GroupSet> groups,
                       std::span<const IterationOps> iterations);

Symmetry find_roles(const Scenario& scenario, const Topology& topology, const Communicator& world,
                    std::span<const GroupSet> groups, RoleDetail detail);

}  // namespace lockstep
