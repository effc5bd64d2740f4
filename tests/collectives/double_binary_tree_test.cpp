#include "sim/collectives/double_binary_tree.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>

namespace lockstep::double_binary_tree_test {

constexpr std::uint32_t most_nodes = 64;

std::uint32_t ceil_log2(std::uint32_t nodes) {
  return static_cast<std::uint32_t>(std::bit_width(nodes - 1));
}

template <class Check>
void for_every_tree(Check check) {
  for (std::uint32_t nodes = 1; nodes <= most_nodes; ++nodes)
    for (std::uint32_t tree = 0; tree < tree_count(nodes); ++tree) {
      INFO("tree ", tree, " over ", nodes, " nodes");
      check(nodes, tree);
    }
}

std::vector<std::uint32_t> path_to_root(std::uint32_t nodes, std::uint32_t node, std::uint32_t tree) {
  std::vector<std::uint32_t> path{node};
  while (const auto parent = tree_links(nodes, path.back(), tree).parent) {
    path.push_back(*parent);
    REQUIRE(path.size() <= nodes);
  }
  return path;
}

TEST_CASE("One node needs no tree between nodes") {
  CHECK(tree_count(1) == 1);
  CHECK(!tree_links(1, 0, 0).parent);
  CHECK(tree_links(1, 0, 0).children.empty());
  CHECK(deepest_path(1, 0) == std::vector<std::uint32_t>{0});
}

TEST_CASE("Parents and children name each other") {
  for_every_tree([](std::uint32_t nodes, std::uint32_t tree) {
    std::uint32_t children = 0;
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const TreeLinks links = tree_links(nodes, node, tree);
      for (const std::uint32_t child : links.children) CHECK(tree_links(nodes, child, tree).parent == node);
      CHECK(links.children.size() <= 2);
      children += static_cast<std::uint32_t>(links.children.size());
    }
    CHECK(children == nodes - 1);
  });
}

TEST_CASE("From every node the way up leads to the one root") {
  for_every_tree([](std::uint32_t nodes, std::uint32_t tree) {
    const std::uint32_t root = path_to_root(nodes, 0, tree).back();
    for (std::uint32_t node = 0; node < nodes; ++node) CHECK(path_to_root(nodes, node, tree).back() == root);
    CHECK(tree_links(nodes, root, tree).children.size() == (nodes > 1 ? 1 : 0));
  });
}

// Below the root, which has one child p, the largest power of two under N, hang log2 p more levels: the way
// from node p to node 1 halves the lowest set bit each time.
TEST_CASE("The deepest path has as many edges as the logarithm of the nodes, rounded up") {
  for_every_tree([](std::uint32_t nodes, std::uint32_t tree) {
    const std::vector<std::uint32_t> deepest = deepest_path(nodes, tree);
    CHECK(deepest.size() == ceil_log2(nodes) + 1);
    CHECK(deepest == path_to_root(nodes, deepest.front(), tree));
    for (std::uint32_t node = 0; node < nodes; ++node)
      CHECK(path_to_root(nodes, node, tree).size() <= deepest.size());
  });
}

// Odd nodes are leaves of the first tree. A mirror of an even number of nodes, and a shift by one, turn odd
// into even: but for node 0 of an odd number, whose neighbour before it, N - 1, is even too.
TEST_CASE("Only node 0 of an odd number of nodes is inside both trees") {
  for (std::uint32_t nodes = 2; nodes <= most_nodes; ++nodes)
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const bool inside_first = !tree_links(nodes, node, 0).children.empty();
      const bool inside_second = !tree_links(nodes, node, 1).children.empty();
      INFO("node ", node, " of ", nodes);
      CHECK((inside_first && inside_second) == (node == 0 && nodes % 2 == 1));
    }
}

// The lowest set bit b of 6 is 2: its parent clears it and sets 4, its children are 6 - 1 and 6 + 1.
TEST_CASE("In the first tree a node stands as high as its lowest set bit") {
  CHECK(tree_links(8, 6, 0).parent == 4);
  CHECK(tree_links(8, 6, 0).children == std::vector<std::uint32_t>{5, 7});
  CHECK(tree_links(8, 4, 0).parent == 0);
  CHECK(tree_links(8, 4, 0).children == std::vector<std::uint32_t>{2, 6});
  CHECK(tree_links(8, 0, 0).children == std::vector<std::uint32_t>{4});
}

// Of 6 nodes the parent of 4 would be 0 | 8, which is not there, so it is 0; node 5's would be 4 | 2 = 6, so
// it is 4. Node 4 reaches 4 - 2 below and, since 4 + 2 is not there, 4 + 1.
TEST_CASE("Where the number of nodes is no power of two a missing parent or child is the next nearer") {
  CHECK(tree_links(6, 4, 0).parent == 0);
  CHECK(tree_links(6, 5, 0).parent == 4);
  CHECK(tree_links(6, 4, 0).children == std::vector<std::uint32_t>{2, 5});
}

TEST_CASE("The second tree mirrors an even number of nodes and shifts an odd one") {
  for (std::uint32_t nodes = 2; nodes <= most_nodes; ++nodes)
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const auto renamed = [&](std::uint32_t other) {
        return nodes % 2 == 0 ? nodes - 1 - other : (other + 1) % nodes;
      };
      const TreeLinks first = tree_links(nodes, node, 0);
      const TreeLinks second = tree_links(nodes, renamed(node), 1);
      CHECK(first.parent.has_value() == second.parent.has_value());
      if (first.parent)
        CHECK(second.parent == renamed(*first.parent));
      REQUIRE(second.children.size() == first.children.size());
      for (std::size_t child = 0; child < first.children.size(); ++child)
        CHECK(second.children[child] == renamed(first.children[child]));
    }
}

}  // namespace lockstep::double_binary_tree_test
