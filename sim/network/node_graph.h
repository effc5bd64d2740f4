#pragma once

// One node as a graph: GPUs, NVSwitch, PCIe switches, sockets and NICs, joined by directed links.
//
// Problem:   what does a message from GPU 3 to GPU 6, or to NIC 1, cross, and whom does it meet there?
// Idea:      build the graph once for a machine; a message takes the path of least cost, where a PCIe hop
//            costs more than any NVLink path and the link between sockets more than any PCIe path.
// Invariant: no path leads through a third GPU (NVLink does not forward), every link is one direction.
// Cost:      Dijkstra once per source; at most a few hundred links a node.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/network/machine.h"

namespace lockstep {

struct NodeLink {
  std::uint32_t from;
  std::uint32_t to;
  LinkClass link_class;
  Bandwidth bandwidth;
  Duration latency;
};

class NodeGraph {
 public:
  NodeGraph(const MachineSpec& machine, std::int64_t gpus_in_use);

  std::uint32_t gpu(std::size_t index) const { return static_cast<std::uint32_t>(index); }
  std::uint32_t nic(std::size_t index) const { return nics_[index]; }
  // The memory of a socket; nodes may have fewer.
  std::uint32_t host(std::size_t socket) const { return sockets_[socket % sockets_.size()]; }
  std::size_t nic_count() const { return nics_.size(); }
  const std::vector<NodeLink>& links() const { return links_; }
  const std::string& vertex_name(std::uint32_t vertex) const { return names_[vertex]; }

  // Indices into links(), in order. Both ends equal, or joined without a modelled link: empty.
  const std::vector<std::uint32_t>& path(std::uint32_t from, std::uint32_t to) const {
    return paths_[from][to];
  }

 private:
  std::uint32_t add_vertex(std::string name);
  void connect(std::uint32_t a, std::uint32_t b, const LinkSpec& link, std::int64_t count = 1);
  void add_gpu_links(const MachineSpec& machine);
  void add_host(const MachineSpec& machine);
  void add_nics(const MachineSpec& machine);
  std::uint32_t host_of_gpu(const MachineSpec& machine, std::size_t gpu) const;
  void find_paths();
  void detour_through_hosts(const MachineSpec& machine);
  void find_paths_from(std::uint32_t source);

  std::size_t gpus_ = 0;
  std::vector<std::string> names_;
  std::vector<NodeLink> links_;
  std::vector<std::vector<std::uint32_t>> outgoing_;  // by vertex
  std::vector<std::uint32_t> nics_;
  std::vector<std::uint32_t> sockets_;
  std::vector<std::uint32_t> gpu_host_;  // PCIe switch or socket above each GPU
  std::vector<std::vector<std::vector<std::uint32_t>>> paths_;
};

}  // namespace lockstep
