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

#include "sim/network/routing.h"
#include "sim/plan/fidelity.h"

namespace lockstep {

// `attributes`: a number per rank that tells ranks of different kind or speed apart.
Symmetry find_symmetry(const Topology& topology, const Communicator& world, Fidelity fidelity,
                       const std::vector<std::int64_t>& attributes);

Symmetry no_symmetry(const Topology& topology);

}  // namespace lockstep
