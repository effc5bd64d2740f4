// Groups of routers: all routers of a group are joined to each other, and every group to every other by one
// link, spread over its routers in turn.

#include "sim/network/topologies/switch_graph.h"

namespace lockstep::topologies::dragonfly {
namespace {

std::string router_name(std::int64_t group, std::int64_t router) {
  return "group" + std::to_string(group) + ".router" + std::to_string(router);
}

void join_nodes(Topology& topology, const Link& wire) {
  const FabricSpec& fabric = topology.fabric();
  for (std::uint32_t node = 0; node < topology.machines(); ++node) {
    const std::int64_t router = node / fabric.nodes_per_router;
    for (std::uint32_t nic = 0; nic < topology.nics_per_node(); ++nic)
      join_vertices(topology, port_name({node, nic}),
                    router_name(router / fabric.routers_per_group, router % fabric.routers_per_group), wire);
  }
}

void join_group(Topology& topology, std::int64_t group, const Link& wire) {
  for (std::int64_t a = 0; a < topology.fabric().routers_per_group; ++a)
    for (std::int64_t b = a + 1; b < topology.fabric().routers_per_group; ++b)
      join_vertices(topology, router_name(group, a), router_name(group, b), wire);
}

void build(Topology& topology) {
  const FabricSpec& fabric = topology.fabric();
  const Link wire{topology.effective(LinkClass::network, topology.nic_bandwidth(0)), Duration::zero(),
                  LinkClass::network};
  join_nodes(topology, wire);
  for (std::int64_t a = 0; a < fabric.groups; ++a) {
    join_group(topology, a, wire);
    for (std::int64_t b = a + 1; b < fabric.groups; ++b)
      join_vertices(topology, router_name(a, b % fabric.routers_per_group),
                    router_name(b, a % fabric.routers_per_group), wire);
  }
}

std::vector<std::string> problems(const FabricShape& shape) {
  const std::int64_t places =
      shape.fabric.groups * shape.fabric.routers_per_group * shape.fabric.nodes_per_router;
  if (places >= shape.nodes)
    return {};
  return {"found a dragonfly with room for " + std::to_string(places) +
          " nodes, expected room for cluster.nodes = " + std::to_string(shape.nodes)};
}

const Registration<FabricKind> dragonfly_registration{
    "dragonfly",
    {build, route_by_graph, "groups of routers, all joined within and one link between any two", problems}};

}  // namespace
}  // namespace lockstep::topologies::dragonfly
