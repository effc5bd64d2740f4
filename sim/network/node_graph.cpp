#include "sim/network/node_graph.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "sim/base/check.h"

namespace lockstep {
namespace {

constexpr std::int64_t unreachable = std::numeric_limits<std::int64_t>::max();

// A path's cost orders classes of link: one PCIe hop outweighs any NVLink path, one socket link any PCIe
// path. Among equals the fewest hops win.
std::int64_t hop_cost(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::nvlink:
      return 1;
    case LinkClass::pcie:
      return 100;
    case LinkClass::socket:
      return 10'000;
    case LinkClass::network:
      return 1'000'000;
  }
  return unreachable;
}

}  // namespace

NodeGraph::NodeGraph(const MachineSpec& machine, std::int64_t gpus_in_use)
    : gpus_(static_cast<std::size_t>(gpus_in_use)) {
  for (std::size_t index = 0; index < gpus_; ++index) add_vertex("gpu" + std::to_string(index));
  add_gpu_links(machine);
  add_host(machine);
  add_nics(machine);
  find_paths();
  if (!machine.host.peer_to_peer)
    detour_through_hosts(machine);
}

std::uint32_t NodeGraph::add_vertex(std::string name) {
  names_.push_back(std::move(name));
  outgoing_.emplace_back();
  return static_cast<std::uint32_t>(names_.size() - 1);
}

void NodeGraph::connect(std::uint32_t a, std::uint32_t b, const LinkSpec& link, std::int64_t count) {
  const Bandwidth bandwidth = link.bandwidth * count;
  outgoing_[a].push_back(static_cast<std::uint32_t>(links_.size()));
  outgoing_[b].push_back(static_cast<std::uint32_t>(links_.size() + 1));
  links_.push_back({a, b, link.link_class, bandwidth, link.latency});
  links_.push_back({b, a, link.link_class, bandwidth, link.latency});
}

void NodeGraph::add_gpu_links(const MachineSpec& machine) {
  const GpuLinks& gpu_links = machine.gpu_links;
  if (gpu_links.kind == GpuLinkKind::nvswitch) {
    const std::uint32_t nvswitch = add_vertex("nvswitch");
    for (std::size_t index = 0; index < gpus_; ++index)
      connect(gpu(index), nvswitch, gpu_links.link, gpu_links.links_per_gpu);
  }
  if (gpu_links.kind == GpuLinkKind::mesh) {
    for (std::size_t a = 0; a < gpus_; ++a)
      for (std::size_t b = a + 1; b < gpus_; ++b)
        if (gpu_links.matrix[a][b] > 0)
          connect(gpu(a), gpu(b), gpu_links.link, gpu_links.matrix[a][b]);
  }
}

void NodeGraph::add_host(const MachineSpec& machine) {
  for (std::int64_t index = 0; index < machine.host.sockets; ++index)
    sockets_.push_back(add_vertex("socket" + std::to_string(index)));
  if (!machine.host.pcie)
    return;  // nothing is known of the way to host memory: it costs nothing
  for (std::size_t index = 1; index < sockets_.size(); ++index)
    connect(sockets_[index - 1], sockets_[index], machine.host.socket_link.value_or(*machine.host.pcie));
  gpu_host_.assign(gpus_, 0);
  for (std::size_t index = 0; index < gpus_; ++index) gpu_host_[index] = host_of_gpu(machine, index);
  for (const auto& below : machine.host.pcie_switches) {
    const std::uint32_t pcie_switch = add_vertex("pcie_switch" + std::to_string(below.front()));
    connect(pcie_switch, host_of_gpu(machine, static_cast<std::size_t>(below.front())), *machine.host.pcie);
    for (const std::int64_t index : below)
      if (static_cast<std::size_t>(index) < gpus_)
        gpu_host_[static_cast<std::size_t>(index)] = pcie_switch;
  }
  for (std::size_t index = 0; index < gpus_; ++index)
    connect(gpu(index), gpu_host_[index], *machine.host.pcie);
}

// The first half of the GPUs sits on socket 0, and so on.
std::uint32_t NodeGraph::host_of_gpu(const MachineSpec& machine, std::size_t index) const {
  const auto gpus = static_cast<std::size_t>(machine.gpus);
  return sockets_[std::min(index * sockets_.size() / gpus, sockets_.size() - 1)];
}

void NodeGraph::add_nics(const MachineSpec& machine) {
  for (std::size_t index = 0; index < machine.nics.size(); ++index) {
    nics_.push_back(add_vertex("nic" + std::to_string(index)));
    if (!machine.host.pcie)
      continue;
    const auto& near = machine.nics[index].gpus;
    const std::size_t closest = near.empty() ? 0 : static_cast<std::size_t>(near.front());
    const std::uint32_t host = closest < gpus_ ? gpu_host_[closest] : host_of_gpu(machine, closest);
    connect(nics_.back(), host, *machine.host.pcie);
  }
}

void NodeGraph::find_paths() {
  paths_.assign(names_.size(), std::vector<std::vector<std::uint32_t>>(names_.size()));
  for (std::uint32_t source = 0; source < names_.size(); ++source) find_paths_from(source);
}

// Without peer-to-peer access one GPU writes to host memory and the other reads from there.
void NodeGraph::detour_through_hosts(const MachineSpec& machine) {
  for (std::uint32_t from = 0; from < gpus_ && !sockets_.empty(); ++from)
    for (std::uint32_t to = 0; to < gpus_; ++to) {
      std::vector<std::uint32_t>& path = paths_[from][to];
      if (from == to || path.empty() || links_[path.front()].link_class == LinkClass::nvlink)
        continue;
      const std::uint32_t memory = host_of_gpu(machine, from);
      path = paths_[from][memory];
      path.insert(path.end(), paths_[memory][to].begin(), paths_[memory][to].end());
    }
}

void NodeGraph::find_paths_from(std::uint32_t source) {
  using Entry = std::pair<std::int64_t, std::uint32_t>;  // cost, vertex
  std::vector<std::int64_t> cost(names_.size(), unreachable);
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> frontier;
  cost[source] = 0;
  frontier.emplace(0, source);
  while (!frontier.empty()) {
    const auto [so_far, vertex] = frontier.top();
    frontier.pop();
    if (so_far > cost[vertex] || (vertex < gpus_ && vertex != source))
      continue;  // stale, or a third GPU, which does not forward
    for (const std::uint32_t link : outgoing_[vertex]) {
      if (so_far + hop_cost(links_[link].link_class) >= cost[links_[link].to])
        continue;
      const std::uint32_t to = links_[link].to;
      cost[to] = so_far + hop_cost(links_[link].link_class);
      paths_[source][to] = paths_[source][vertex];
      paths_[source][to].push_back(link);
      frontier.emplace(cost[to], to);
    }
  }
}

}  // namespace lockstep
