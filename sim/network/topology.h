#pragma once

// Every link of the cluster, and the way from any rank to any other.
//
// Problem:   a message between ranks crosses links inside two nodes and a fabric between them.
// Idea:      all machines are copies of one node graph, so link e of machine n has id n * links_per_node + e;
//            those beyond the nodes only serve. NIC ports follow, then one link per rank, hosts last, that
//            stands for its compute capacity, so that kernels and collectives share it like any other; where
//            too few channels are forced, one more per GPU for what these can send; last comes what the
//            fabric adds.
// Invariant: a route crosses each link at most once; latencies lie on links, bandwidths in bytes/s.
// Cost:      building is linear in nodes; a route is a few table look-ups.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/registry.h"
#include "sim/base/units.h"
#include "sim/network/calibration.h"
#include "sim/network/fabric_graph.h"
#include "sim/network/machine.h"
#include "sim/network/node_graph.h"
#include "sim/network/route_table.h"
#include "sim/plan/host.h"
#include "sim/plan/plan.h"

namespace lockstep {

// Work units per second of a GPU that nothing disturbs: one unit of kernel work is one picosecond.
inline constexpr Bandwidth full_compute_rate{1'000'000'000'000};

struct Link {
  Bandwidth bandwidth;  // what a library gets out of it
  Duration latency;
  LinkClass link_class = LinkClass::network;
};

// A port of the fabric: NIC `nic` of node `node`.
struct Port {
  std::uint32_t node;
  std::uint32_t nic;
};

class Topology;

// What a fabric must fit before anything is built.
struct FabricShape {
  const FabricSpec& fabric;
  std::uint32_t nodes;
  std::uint32_t nics_per_node;
};

// A kind of fabric: adds its inner links, then says what a message from port to port crosses beyond the two
// NIC links, and the extra latency of its switches.
struct FabricKind {
  void (*build)(Topology& topology);
  void (*route)(const Topology& topology, Port from, Port to, std::vector<LinkId>& links, Duration& latency);
  std::string description;
  // What the user must change, one line each; null: any shape will do.
  std::vector<std::string> (*problems)(const FabricShape& shape) = nullptr;
};

// What a hop between two ranks crosses.
struct HopRoute {
  std::vector<LinkId> links;
  Duration latency;
  LinkClass slowest_class = LinkClass::nvlink;
};

struct TopologyOptions {
  const MachineSpec& machine;
  const FabricSpec& fabric;
  const Calibration& calibration;
  std::uint32_t nodes;
  std::uint32_t gpus_per_node;
  std::vector<Ratio> slowdown;                  // by rank; empty: nobody is slow
  std::vector<Ratio> nic_slowdown = {};         // by node and NIC; empty: none is slow
  std::optional<Bandwidth> sending_limit = {};  // of a rank's channels together; none: what its links carry
  std::vector<Host> hosts = {};                 // that take part: ranks after the GPUs
};

class Topology {
 public:
  explicit Topology(const TopologyOptions& options);

  std::uint32_t nodes() const { return nodes_; }
  // Nodes, and the machines that only serve them.
  std::uint32_t machines() const { return machines_; }
  std::uint32_t gpus_per_node() const { return gpus_per_node_; }
  std::uint32_t nics_per_node() const { return static_cast<std::uint32_t>(node_.nic_count()); }
  std::uint32_t ranks() const { return nodes_ * gpus_per_node_; }
  std::uint32_t ranks_and_hosts() const { return ranks() + static_cast<std::uint32_t>(hosts_.size()); }
  const std::vector<Host>& hosts() const { return hosts_; }
  const NodeGraph& node() const { return node_; }
  const FabricSpec& fabric() const { return fabric_; }
  const IdVector<LinkId, Link>& links() const { return links_; }
  // What the engine shares out, by link.
  std::vector<Bandwidth> capacities() const;
  // What each of so many that cross a link at once gets of it; ConfigError where that is less than 1 B/s.
  Bandwidth share_of(LinkId link, std::int64_t crossings) const;
  // "node 3: gpu1 -> nvswitch", for people.
  std::string link_name(LinkId link) const;

  LinkId compute_link(Rank rank) const { return LinkId{first_.compute + rank.index}; }
  bool is_compute(LinkId link) const {
    return link.index >= first_.compute && link.index < first_.compute + ranks_and_hosts();
  }
  HopRoute hop(const Flow& flow) const;
  HopRoute hop(Rank source, Rank destination, std::uint32_t nic) const {
    return hop({.source = source, .destination = destination, .channel = nic});
  }

  // For fabrics: adds an inner link; `first_fabric_link` is where theirs begin.
  LinkId add_fabric_link(const Link& link, std::string name);
  FabricGraph& fabric_graph() { return fabric_graph_; }
  const FabricGraph& fabric_graph() const { return fabric_graph_; }
  std::uint32_t first_fabric_link() const { return first_.fabric; }
  Bandwidth nic_bandwidth(std::uint32_t nic) const { return nic_links_[nic].bandwidth; }
  // What a library gets out of a wire of this class.
  Bandwidth effective(LinkClass link_class, Bandwidth wire) const;

 private:
  // Where a rank is: a machine, and a vertex of its graph.
  struct Place {
    std::uint32_t machine;
    std::uint32_t vertex;
  };
  // Where each kind of link begins, after those of the nodes.
  struct FirstLinks {
    std::uint32_t nic = 0;
    std::uint32_t compute = 0;
    std::optional<std::uint32_t> sending = {};  // none: what a rank's links carry bounds it
    std::uint32_t fabric = 0;
  };
  void add_node_links();
  void add_nic_links(const MachineSpec& machine, const std::vector<Ratio>& slowdowns);
  void add_compute_links(const std::vector<Ratio>& slowdowns);
  void add_sending_links(Bandwidth limit);
  void append_node_path(std::uint32_t node, std::uint32_t from, std::uint32_t to, HopRoute& route) const;
  Place place_of(Rank rank) const;
  std::uint32_t find_vertex_beside_nic(std::uint32_t own, std::uint32_t nic) const;
  void find_vertices_beside_nics();
  std::uint32_t vertex_beside_nic(std::uint32_t own, std::uint32_t nic) const;
  // NIC 0.. of its node that serves a channel: channels are dealt round the NICs.
  std::uint32_t nic_of_channel(std::uint32_t channel) const { return channel % nics_per_node(); }
  void append_way_out(Place from, std::uint32_t nic, HopRoute& route) const;
  void append_way_in(Place to, std::uint32_t nic, HopRoute& route) const;
  LinkId egress(Port port) const;
  LinkId ingress(Port port) const;

  NodeGraph node_;
  FabricSpec fabric_;
  const FabricKind* fabric_kind_;
  std::map<LinkClass, Ratio> efficiency_;
  std::int64_t unhidden_per_byte_ps_;
  std::uint32_t nodes_;
  std::uint32_t machines_;
  std::vector<Host> hosts_;
  std::uint32_t gpus_per_node_;
  std::vector<LinkSpec> nic_links_;
  std::vector<std::uint32_t> gpu_of_nic_;  // whose own it is, of those in use
  std::vector<std::uint32_t> beside_nic_;  // by GPU, then by NIC: the vertex that hands over
  IdVector<LinkId, Link> links_;
  FirstLinks first_;
  std::vector<std::string> fabric_link_names_;
  FabricGraph fabric_graph_;  // empty unless the fabric is drawn as one
};

}  // namespace lockstep
