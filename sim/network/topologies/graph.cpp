// The user's own graph: switches by name, and links between them and the nodes' NICs.

#include <algorithm>

#include "sim/base/nearest_name.h"
#include "sim/network/topologies/switch_graph.h"

namespace lockstep::topologies::graph {
namespace {

void build(Topology& topology) {
  for (const FabricSpec::GraphLink& link : topology.fabric().links)
    join_vertices(
        topology, link.from, link.to,
        {topology.effective(LinkClass::network, link.link.bandwidth), link.link.latency, LinkClass::network});
}

std::vector<std::string> known_vertices(const FabricShape& shape) {
  std::vector<std::string> names = shape.fabric.switches;
  for (std::uint32_t node = 0; node < shape.nodes; ++node)
    for (std::uint32_t nic = 0; nic < shape.nics_per_node; ++nic) names.push_back(port_name({node, nic}));
  return names;
}

FabricGraph drawn_graph(const FabricShape& shape) {
  FabricGraph graph;
  for (const FabricSpec::GraphLink& link : shape.fabric.links) {
    graph.add_edge(graph.vertex(link.from), graph.vertex(link.to), LinkId{0});
    graph.add_edge(graph.vertex(link.to), graph.vertex(link.from), LinkId{0});
  }
  return graph;
}

// Every end of a link is a switch or a port that exists, and every port reaches the first.
std::vector<std::string> problems(const FabricShape& shape) {
  std::vector<std::string> found;
  const std::vector<std::string> known = known_vertices(shape);
  for (const FabricSpec::GraphLink& link : shape.fabric.links)
    for (const std::string& end : {link.from, link.to})
      if (std::find(known.begin(), known.end(), end) == known.end())
        found.push_back("found a link to \"" + end + "\", " + describe_choices(end, known));
  if (!found.empty())
    return found;
  const FabricGraph graph = drawn_graph(shape);
  for (const std::string& name : known) {
    const bool is_port = name.find(".nic") != std::string::npos;
    const auto first = graph.find(port_name({0, 0}));
    const auto vertex = graph.find(name);
    if (is_port && (!first || !vertex || !graph.shortest_path(*first, *vertex)))
      found.push_back("found no way from node0.nic0 to " + name + ", expected a link that joins them");
  }
  return found;
}

const Registration<FabricKind> graph_registration{
    "graph", {build, route_by_graph, "switches and links as the scenario draws them", problems}};

}  // namespace
}  // namespace lockstep::topologies::graph
