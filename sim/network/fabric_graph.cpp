#include "sim/network/fabric_graph.h"

#include <algorithm>
#include <unordered_map>

namespace lockstep {

std::uint32_t FabricGraph::vertex(const std::string& name) {
  const auto [found, is_new] = names_.emplace(name, static_cast<std::uint32_t>(edges_.size()));
  if (is_new)
    edges_.emplace_back();
  return found->second;
}

std::optional<std::uint32_t> FabricGraph::find(const std::string& name) const {
  const auto found = names_.find(name);
  if (found == names_.end())
    return std::nullopt;
  return found->second;
}

void FabricGraph::add_edge(std::uint32_t from, std::uint32_t to, LinkId link) {
  edges_[from].push_back({to, link});
}

std::optional<std::vector<LinkId>> FabricGraph::shortest_path(std::uint32_t from, std::uint32_t to) const {
  struct Step {
    std::uint32_t before;
    LinkId link;
  };
  std::unordered_map<std::uint32_t, Step> reached{{from, {from, LinkId{}}}};
  std::vector<std::uint32_t> frontier{from};
  for (std::size_t next = 0; next < frontier.size() && !reached.contains(to); ++next)
    for (const Edge& edge : edges_[frontier[next]])
      if (reached.emplace(edge.to, Step{frontier[next], edge.link}).second)
        frontier.push_back(edge.to);
  if (!reached.contains(to))
    return std::nullopt;
  std::vector<LinkId> path;
  for (std::uint32_t vertex = to; vertex != from; vertex = reached.at(vertex).before)
    path.push_back(reached.at(vertex).link);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace lockstep
