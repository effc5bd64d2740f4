#pragma once

// Which ranks and links of a cluster are alike.
//
// Problem:   folding is exact only if alike ranks have alike neighbours and cross links loaded alike.
// Idea:      colour ranks and links by what they are (place in the node, speed, capacity), then refine:
//            a rank's colour takes in its ring neighbours' and its links' colours, a link's those of all
//            that cross it. When no colour splits any more the partition is equitable. At fidelity `flow`
//            a collective is one op over all its links, so neighbours do not matter and the first colours do.
// Invariant: a straggler, a slow link or an odd ring splits the classes by itself; a partition that keeps
//            splitting for long is given up and every rank stands for itself, which is always exact.
// Cost:      rounds * ranks * rings; colours are 64-bit hashes, distinct with near certainty (a collision
//            among 10^6 has odds of 10^-7).
// Reference: colour refinement (1-dimensional Weisfeiler-Leman).

#include <span>

#include "sim/network/routing.h"
#include "sim/plan/fidelity.h"
#include "sim/plan/group.h"

namespace lockstep {

// `attributes`: a number per rank that tells ranks of different kind or speed apart.
Symmetry find_symmetry(const Topology& topology, const Communicator& world, Fidelity fidelity,
                       const std::vector<std::int64_t>& attributes);

// What a collective sends in a group, between places of the group.
struct GroupTraffic {
  std::vector<Flow> flows;
  std::vector<std::vector<Flow>> rounds = {};  // the hops that its time goes by
  bool is_chain = false;                       // else by the dearest of them
  bool loads_links = true;                     // that others cross meanwhile
};

// Of a set's groups, by shape.
using SetTraffics = std::vector<std::vector<GroupTraffic>>;

// The same at fidelity `flow` where collectives run in groups instead: ranks, groups and links are coloured
// alternately, a rank by its groups, a group by its ranks and links and by how long its hops are, a link by the groups
// that cross it, and how often with each of their algorithms. `traffics`: by set.
Symmetry find_symmetry(const Topology& topology, std::span<const GroupSet> sets,
                       std::span<const SetTraffics> traffics, const std::vector<std::int64_t>& attributes);

Symmetry no_symmetry(const Topology& topology);

// Where several collectives may be under way, of several algorithms: a link stands only for those that each of
// these traffics loads alike. The busiest link of one need not be the busiest of another.
Symmetry split_by_load(const Topology& topology, Symmetry symmetry,
                       const IdVector<TrafficId, Traffic>& traffics);

}  // namespace lockstep
