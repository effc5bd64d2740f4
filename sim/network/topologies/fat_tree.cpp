// Whole nodes below a leaf, leaves below a spine; `oversubscription` narrows every leaf's way up.

#include "sim/network/topologies/leaf_spine.h"

namespace lockstep::topologies::fat_tree {
namespace {

std::uint32_t leaf_of(const Topology& topology, Port port) {
  return port.node / nodes_per_leaf(topology, topology.nics_per_node());
}

void build(Topology& topology) {
  const std::uint32_t nodes = nodes_per_leaf(topology, topology.nics_per_node());
  const std::uint32_t ports = std::min(nodes, topology.machines()) * topology.nics_per_node();
  build_leaf_spine(topology, divided_up(topology.machines(), nodes), leaf_width(topology, ports));
}

void route(const Topology& topology, Port from, Port to, std::vector<LinkId>& links, Duration& latency) {
  route_leaf_spine(topology, leaf_of(topology, from), leaf_of(topology, to), links, latency);
}

const Registration<FabricKind> fat_tree_registration{
    "fat_tree", {build, route, "whole nodes below a leaf; leaves meet in a spine, oversubscribed as stated"}};

}  // namespace
}  // namespace lockstep::topologies::fat_tree
