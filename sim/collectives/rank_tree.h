#pragma once

// One channel's tree over all ranks: a double binary tree between nodes, a chain inside each.
//
// Idea:      in a node the ranks stand in the order of the channel's ring; the first, beside the NIC, has the
//            next in the chain and the children's first ranks below it and the parent's first rank above.
// Invariant: edges come root first, so an edge comes after the one above it; all of a level's edges can be
//            used at once, and each after those of the levels before.
// Cost:      linear in ranks.

#include <cstdint>
#include <vector>

#include "sim/plan/communicator.h"

namespace lockstep {

struct RankEdge {
  Rank lower;
  Rank upper;
  std::vector<std::size_t> below;  // edges whose upper end is this one's lower end
  std::uint32_t up_level = 0;      // what goes up waits for this many edges, one after another
  std::uint32_t down_level = 0;    // and what goes down
};

struct RankTree {
  Rank root;
  std::vector<RankEdge> edges;
  std::vector<std::size_t> below_root;
  std::uint32_t levels = 0;
};

// Tree 0 or 1 of `channel`.
RankTree find_rank_tree(const Communicator& world, std::uint32_t channel, std::uint32_t tree);

}  // namespace lockstep
