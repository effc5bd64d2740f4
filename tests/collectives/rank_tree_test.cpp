#include "sim/collectives/rank_tree.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sim/collectives/double_binary_tree.h"

namespace lockstep::rank_tree_test {

// Two channels whose chains enter the node at different GPUs.
Communicator world_of(std::uint32_t nodes, std::uint32_t gpus) {
  Communicator world;
  world.nodes = nodes;
  world.gpus_per_node = gpus;
  for (const std::uint32_t entry : {0u, gpus - 1}) {
    std::vector<std::uint32_t> order(gpus);
    for (std::uint32_t place = 0; place < gpus; ++place) order[place] = (entry + place) % gpus;
    world.rings.push_back(ring_pattern(order, 1));
  }
  return world;
}

template <class Check>
void for_every_tree(Check check) {
  for (const std::uint32_t nodes : {1u, 2u, 3u, 4u, 7u, 16u})
    for (const std::uint32_t gpus : {1u, 2u, 5u, 8u})
      for (std::uint32_t channel = 0; channel < 2; ++channel)
        for (std::uint32_t tree = 0; tree < tree_count(nodes); ++tree) {
          INFO(nodes, " x ", gpus, ", channel ", channel, ", tree ", tree);
          const Communicator world = world_of(nodes, gpus);
          check(world, find_rank_tree(world, channel, tree), channel);
        }
}

TEST_CASE("Every rank but the root is the lower end of one edge") {
  for_every_tree([](const Communicator& world, const RankTree& tree, std::uint32_t) {
    std::set<std::uint32_t> lower{tree.root.index};
    for (const RankEdge& edge : tree.edges) CHECK(lower.insert(edge.lower.index).second);
    CHECK(lower.size() == world.ranks());
    CHECK(tree.edges.size() == world.ranks() - 1);
  });
}

TEST_CASE("Nodes speak with each other through the first rank of the channel's chain") {
  for_every_tree([](const Communicator& world, const RankTree& tree, std::uint32_t channel) {
    const RingPattern& chain = world.rings[channel];
    for (const RankEdge& edge : tree.edges) {
      const std::uint32_t upper = chain.position[world.local_of(edge.upper)];
      const std::uint32_t lower = chain.position[world.local_of(edge.lower)];
      if (world.node_of(edge.upper) == world.node_of(edge.lower))
        CHECK(lower == upper + 1);
      else
        CHECK((lower == 0 && upper == 0));
    }
  });
}

TEST_CASE("An edge comes after those it depends on, level by level") {
  for_every_tree([](const Communicator&, const RankTree& tree, std::uint32_t) {
    for (const std::size_t edge : tree.below_root) {
      CHECK(tree.edges[edge].upper == tree.root);
      CHECK(tree.edges[edge].down_level == 0);
    }
    for (std::size_t edge = 0; edge < tree.edges.size(); ++edge)
      for (const std::size_t below : tree.edges[edge].below) {
        CHECK(below > edge);
        CHECK(tree.edges[below].upper == tree.edges[edge].lower);
        CHECK(tree.edges[below].down_level == tree.edges[edge].down_level + 1);
        CHECK(tree.edges[below].up_level < tree.edges[edge].up_level);
      }
  });
}

// A chain of g GPUs has g - 1 edges; between nodes there is one more for each level of the binary tree.
TEST_CASE("There are as many levels as a chain and the way between nodes have edges") {
  for_every_tree([](const Communicator& world, const RankTree& tree, std::uint32_t) {
    const auto between = static_cast<std::uint32_t>(deepest_path(world.nodes, 0).size()) - 1;
    CHECK(tree.levels == world.gpus_per_node - 1 + between);
    for (const RankEdge& edge : tree.edges) {
      CHECK(edge.up_level < tree.levels);
      CHECK(edge.down_level < tree.levels);
    }
  });
}

}  // namespace lockstep::rank_tree_test
