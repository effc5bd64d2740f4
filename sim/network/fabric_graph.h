#pragma once

// A fabric as a graph of switches: for those whose routes no formula gives.
//
// Problem:   a torus, a dragonfly and a user's own drawing have no fixed number of hops.
// Idea:      vertices are ports of nodes and switches, edges are links of one direction; a message takes a
//            path of fewest hops, found when it is asked for by breadth-first search that stops on arrival.
// Invariant: among equally short paths the one over earlier links is taken, every time.
// Cost:      a search per route, as far as the destination; routes are asked for once per hop of a ring.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/network/route_table.h"

namespace lockstep {

class FabricGraph {
 public:
  // The vertex of this name, made at first mention.
  std::uint32_t vertex(const std::string& name);
  std::optional<std::uint32_t> find(const std::string& name) const;
  void add_edge(std::uint32_t from, std::uint32_t to, LinkId link);
  // Links of a shortest path; empty optional when there is none.
  std::optional<std::vector<LinkId>> shortest_path(std::uint32_t from, std::uint32_t to) const;

 private:
  struct Edge {
    std::uint32_t to;
    LinkId link;
  };
  std::map<std::string, std::uint32_t> names_;
  std::vector<std::vector<Edge>> edges_;
};

}  // namespace lockstep
