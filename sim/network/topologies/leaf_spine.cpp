#include "sim/network/topologies/leaf_spine.h"

#include <algorithm>

namespace lockstep {

Bandwidth leaf_width(const Topology& topology, std::uint32_t ports) {
  const Bandwidth port = topology.effective(LinkClass::network, topology.nic_bandwidth(0));
  const auto oversubscription =
      Ratio::parts_per_million(static_cast<std::int64_t>(topology.fabric().oversubscription * 1e6 + 0.5));
  return std::max(divided_in_millions(port * ports, oversubscription), Bandwidth{1});
}

std::uint32_t nodes_per_leaf(const Topology& topology, std::uint32_t ports_per_node) {
  return std::max<std::uint32_t>(
      static_cast<std::uint32_t>(topology.fabric().ports_per_leaf) / std::max(ports_per_node, 1u), 1);
}

void build_leaf_spine(Topology& topology, std::uint32_t leaves, Bandwidth width) {
  if (leaves == 1)
    return;
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    const std::string name = "leaf" + std::to_string(leaf);
    topology.add_fabric_link({width, Duration::zero(), LinkClass::network}, name + " -> spine");
    topology.add_fabric_link({width, Duration::zero(), LinkClass::network}, "spine -> " + name);
  }
}

void route_leaf_spine(const Topology& topology, std::uint32_t from_leaf, std::uint32_t to_leaf,
                      std::vector<LinkId>& links, Duration& latency) {
  latency += topology.fabric().hop_latency;
  if (from_leaf == to_leaf)
    return;
  latency += topology.fabric().hop_latency * 2;
  links.push_back(LinkId{topology.first_fabric_link() + 2 * from_leaf});
  links.push_back(LinkId{topology.first_fabric_link() + 2 * to_leaf + 1});
}

}  // namespace lockstep
