// NIC i of every node hangs on rail i: a rail's leaf serves the same NIC of many nodes, so that a ring which
// keeps to its NIC never meets another and crosses the spine only between groups of nodes.

#include "sim/network/topologies/leaf_spine.h"

namespace lockstep::topologies::rail_optimised {
namespace {

std::uint32_t groups(const Topology& topology) {
  return divided_up(topology.machines(), nodes_per_leaf(topology, 1));
}

std::uint32_t leaf_of(const Topology& topology, Port port) {
  return port.nic * groups(topology) + port.node / nodes_per_leaf(topology, 1);
}

void build(Topology& topology) {
  const std::uint32_t ports = std::min(nodes_per_leaf(topology, 1), topology.machines());
  build_leaf_spine(topology, topology.nics_per_node() * groups(topology), leaf_width(topology, ports));
}

void route(const Topology& topology, Port from, Port to, std::vector<LinkId>& links, Duration& latency) {
  route_leaf_spine(topology, leaf_of(topology, from), leaf_of(topology, to), links, latency);
}

const Registration<FabricKind> rail_optimised_registration{
    "rail_optimised", {build, route, "NIC i of every node on rail i; leaves of a rail meet in a spine"}};

}  // namespace
}  // namespace lockstep::topologies::rail_optimised
