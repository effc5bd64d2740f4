#include "sim/network/topologies/switch_graph.h"

#include "sim/base/check.h"

namespace lockstep {

std::string port_name(Port port) {
  return "node" + std::to_string(port.node) + ".nic" + std::to_string(port.nic);
}

void join_vertices(Topology& topology, const std::string& a, const std::string& b, const Link& link) {
  FabricGraph& graph = topology.fabric_graph();
  const std::uint32_t from = graph.vertex(a);
  const std::uint32_t to = graph.vertex(b);
  graph.add_edge(from, to, topology.add_fabric_link(link, a + " -> " + b));
  graph.add_edge(to, from, topology.add_fabric_link(link, b + " -> " + a));
}

void route_by_graph(const Topology& topology, Port from, Port to, std::vector<LinkId>& links,
                    Duration& latency) {
  const FabricGraph& graph = topology.fabric_graph();
  const auto path = graph.shortest_path(*graph.find(port_name(from)), *graph.find(port_name(to)));
  LOCKSTEP_CHECK(path.has_value(), "load accepts only fabrics that join every port");
  for (const LinkId link : *path) latency += topology.links()[link].latency;
  latency += topology.fabric().hop_latency * (static_cast<std::int64_t>(path->size()) - 1);
  links.insert(links.end(), path->begin(), path->end());
}

}  // namespace lockstep
