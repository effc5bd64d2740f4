// Every node has a router of its own, joined to its neighbours along each dimension, ends wrapped round.

#include <numeric>

#include "sim/network/topologies/switch_graph.h"

namespace lockstep::topologies::torus {
namespace {

std::string router_name(std::int64_t node) {
  return "router" + std::to_string(node);
}

// The node one step further along `dimension`: `stride` nodes on, wrapped at the end of the dimension.
std::int64_t neighbour(std::int64_t node, std::int64_t stride, std::int64_t length) {
  const std::int64_t place = node / stride % length;
  return node + ((place + 1) % length - place) * stride;
}

void build(Topology& topology) {
  const Link wire{topology.effective(LinkClass::network, topology.nic_bandwidth(0)), Duration::zero(),
                  LinkClass::network};
  for (std::uint32_t node = 0; node < topology.machines(); ++node)
    for (std::uint32_t nic = 0; nic < topology.nics_per_node(); ++nic)
      join_vertices(topology, port_name({node, nic}), router_name(node), wire);
  std::int64_t stride = 1;
  for (const std::int64_t length : topology.fabric().dims) {
    for (std::int64_t node = 0; node < topology.machines() && length > 1; ++node)
      if (length > 2 || node / stride % 2 == 0)
        join_vertices(topology, router_name(node), router_name(neighbour(node, stride, length)), wire);
    stride *= length;
  }
}

std::vector<std::string> problems(const FabricShape& shape) {
  const auto& dims = shape.fabric.dims;
  const std::int64_t places = std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
  if (places == shape.nodes)
    return {};
  return {"found a torus of " + std::to_string(places) +
          " nodes, expected dims that multiply to cluster.nodes = " + std::to_string(shape.nodes)};
}

const Registration<FabricKind> torus_registration{
    "torus",
    {build, route_by_graph, "a router per node, joined to its neighbours in each dimension", problems}};

}  // namespace
}  // namespace lockstep::topologies::torus
