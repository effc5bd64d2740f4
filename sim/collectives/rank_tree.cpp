#include "sim/collectives/rank_tree.h"

#include <algorithm>

#include "sim/collectives/double_binary_tree.h"

namespace lockstep {
namespace {

class RankTreeBuilder {
 public:
  RankTreeBuilder(const Communicator& world, std::uint32_t channel, std::uint32_t tree)
      : world_(world), chain_(world.rings[channel]), tree_(tree) {}

  RankTree build() {
    built_.root = first_of(root_node());
    built_.below_root = add_edges_below(built_.root, 0);
    for (std::size_t edge = 0; edge < built_.edges.size(); ++edge) {
      // The edges may move in memory while some are added.
      auto below = add_edges_below(built_.edges[edge].lower, built_.edges[edge].down_level + 1);
      built_.edges[edge].below = std::move(below);
    }
    find_up_levels();
    return std::move(built_);
  }

 private:
  Rank first_of(std::uint32_t node) const { return world_.rank_at(node, chain_.local_order.front()); }

  std::uint32_t root_node() const { return deepest_path(world_.nodes, tree_).back(); }

  std::vector<Rank> ranks_below(Rank rank) const {
    std::vector<Rank> below;
    const std::uint32_t node = world_.node_of(rank);
    const std::uint32_t place = chain_.position[world_.local_of(rank)];
    if (place + 1 < world_.gpus_per_node)
      below.push_back(world_.rank_at(node, chain_.local_order[place + 1]));
    if (place == 0)
      for (const std::uint32_t child : tree_links(world_.nodes, node, tree_).children)
        below.push_back(first_of(child));
    return below;
  }

  std::vector<std::size_t> add_edges_below(Rank upper, std::uint32_t level) {
    std::vector<std::size_t> added;
    for (const Rank lower : ranks_below(upper)) {
      added.push_back(built_.edges.size());
      built_.edges.push_back(
          {.lower = lower, .upper = upper, .below = {}, .up_level = 0, .down_level = level});
      built_.levels = level + 1;
    }
    return added;
  }

  void find_up_levels() {
    for (auto edge = built_.edges.rbegin(); edge != built_.edges.rend(); ++edge)
      for (const std::size_t below : edge->below)
        edge->up_level = std::max(edge->up_level, built_.edges[below].up_level + 1);
  }

  const Communicator& world_;
  const RingPattern& chain_;
  std::uint32_t tree_;
  RankTree built_;
};

}  // namespace

RankTree find_rank_tree(const Communicator& world, std::uint32_t channel, std::uint32_t tree) {
  return RankTreeBuilder(world, channel, tree).build();
}

}  // namespace lockstep
