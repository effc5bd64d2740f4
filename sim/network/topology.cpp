#include "sim/network/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/base/check.h"
#include "sim/base/error.h"

namespace lockstep {
namespace {

constexpr std::size_t usual_links_of_a_hop = 12;

const FabricKind* find_fabric_kind(const std::string& kind) {
  const FabricKind* found = Registry<FabricKind>::find(kind);
  LOCKSTEP_CHECK(found != nullptr, "load accepts only fabric kinds that are registered");
  return found;
}

std::uint32_t count_machines(const TopologyOptions& options) {
  std::uint32_t machines = options.nodes;
  for (const Host& host : options.hosts) machines = std::max(machines, host.machine + 1);
  return machines;
}

// A byte takes its time on the wire and then some: 1 / (1 / wire + extra).
Bandwidth slowed_by(Bandwidth wire, std::int64_t extra_ps_per_byte) {
  const std::int64_t second = Duration::seconds(1).picoseconds();
  const auto wide = static_cast<Unsigned128>(wire.count());
  const Unsigned128 stretched =
      static_cast<Unsigned128>(second) + wide * static_cast<Unsigned128>(extra_ps_per_byte);
  return Bandwidth{static_cast<std::int64_t>(wide * static_cast<Unsigned128>(second) / stretched)};
}

// Links have numbers of 32 bits.
void check_size(std::uint32_t machines, std::size_t links_of_each) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  if (std::uint64_t{machines} * links_of_each > most)
    throw ConfigError(fmt::format(
        "/cluster/nodes: found {} machines of {} links each, expected at most {} links altogether", machines,
        links_of_each, most));
}

// Of the GPUs in use that a NIC is close to the one it would be dealt in order, else the first; close to none, that one.
std::uint32_t gpu_nearest(const NicSpec& nic, std::size_t number, std::size_t nics, std::uint32_t gpus) {
  const auto dealt = static_cast<std::int64_t>(number * gpus / nics);
  const auto is_in_use = [&](std::int64_t gpu) { return gpu < gpus; };
  const auto first = std::ranges::find_if(nic.gpus, is_in_use);
  const bool takes_dealt = first == nic.gpus.end() || std::ranges::find(nic.gpus, dealt) != nic.gpus.end();
  return static_cast<std::uint32_t>(takes_dealt ? dealt : *first);
}

}  // namespace

Topology::Topology(const TopologyOptions& options)
    : node_(options.machine, options.gpus_per_node),
      fabric_(options.fabric),
      fabric_kind_(find_fabric_kind(options.fabric.kind)),
      efficiency_(options.calibration.efficiency),
      unhidden_per_byte_ps_(options.calibration.unhidden_per_byte_ps),
      nodes_(options.nodes),
      machines_(count_machines(options)),
      hosts_(options.hosts),
      gpus_per_node_(options.gpus_per_node) {
  add_node_links();
  add_nic_links(options.machine, options.nic_slowdown);
  find_vertices_beside_nics();
  add_compute_links(options.slowdown);
  if (options.sending_limit)
    add_sending_links(*options.sending_limit);
  first_.fabric = static_cast<std::uint32_t>(links_.size());
  if (machines_ > 1)
    fabric_kind_->build(*this);
}

Bandwidth Topology::effective(LinkClass link_class, Bandwidth wire) const {
  if (link_class == LinkClass::network && unhidden_per_byte_ps_ > 0)
    wire = slowed_by(wire, unhidden_per_byte_ps_);
  const auto found = efficiency_.find(link_class);
  return found == efficiency_.end() ? wire : scaled_down(wire, found->second);
}

void Topology::add_node_links() {
  const std::size_t links_of_each = node_.links().size() + 2 * nics_per_node() + 2 * gpus_per_node_;
  check_size(machines_, links_of_each);
  links_.reserve(machines_ * links_of_each);
  for (std::uint32_t node = 0; node < machines_; ++node)
    for (const NodeLink& link : node_.links())
      links_.push_back({effective(link.link_class, link.bandwidth), link.latency, link.link_class});
}

void Topology::add_nic_links(const MachineSpec& machine, const std::vector<Ratio>& slowdowns) {
  first_.nic = static_cast<std::uint32_t>(links_.size());
  for (const NicSpec& nic : machine.nics) {
    gpu_of_nic_.push_back(gpu_nearest(nic, nic_links_.size(), machine.nics.size(), gpus_per_node_));
    nic_links_.push_back(nic.link);
  }
  std::size_t number = 0;
  for (std::uint32_t node = 0; node < machines_; ++node)
    for (const LinkSpec& nic : nic_links_) {
      // A hop pays its wire's latency once, where it leaves.
      // Machines beyond the nodes, which serve only, are as they should be.
      const Ratio slowdown = number < slowdowns.size() ? slowdowns[number++] : Ratio::one();
      const Bandwidth bandwidth = divided_down(effective(LinkClass::network, nic.bandwidth), slowdown);
      links_.push_back({bandwidth, nic.latency, LinkClass::network});
      links_.push_back({bandwidth, Duration::zero(), LinkClass::network});
    }
}

void Topology::add_compute_links(const std::vector<Ratio>& slowdowns) {
  first_.compute = static_cast<std::uint32_t>(links_.size());
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    const Ratio slowdown = slowdowns.empty() ? Ratio::one() : slowdowns[rank];
    links_.push_back({divided_in_millions(full_compute_rate, slowdown), Duration::zero(), LinkClass::nvlink});
  }
  for (std::size_t host = 0; host < hosts_.size(); ++host)
    links_.push_back({full_compute_rate, Duration::zero(), LinkClass::nvlink});
}

void Topology::add_sending_links(Bandwidth limit) {
  first_.sending = static_cast<std::uint32_t>(links_.size());
  for (std::uint32_t rank = 0; rank < ranks(); ++rank)
    links_.push_back({limit, Duration::zero(), LinkClass::nvlink});
}

LinkId Topology::add_fabric_link(const Link& link, std::string name) {
  fabric_link_names_.push_back(std::move(name));
  return links_.push_back(link);
}

LinkId Topology::egress(Port port) const {
  return LinkId{first_.nic + 2 * (port.node * nics_per_node() + port.nic)};
}

LinkId Topology::ingress(Port port) const {
  return LinkId{egress(port).index + 1};
}

void Topology::append_node_path(std::uint32_t node, std::uint32_t from, std::uint32_t to,
                                HopRoute& route) const {
  const auto first = node * static_cast<std::uint32_t>(node_.links().size());
  for (const std::uint32_t link : node_.path(from, to)) {
    const NodeLink& inside = node_.links()[link];  // every node has the same, and this one is at hand
    route.links.push_back(LinkId{first + link});
    route.latency += inside.latency;
    route.slowest_class = std::max(route.slowest_class, inside.link_class);
  }
}

// A GPU that is not close to the NIC hands over to the GPU that is, when NVLink joins the two (NCCL's PXN):
// the message then stays off the links between sockets.
std::uint32_t Topology::find_vertex_beside_nic(std::uint32_t own, std::uint32_t nic) const {
  // The GPU whose own NIC this is comes first, so that GPUs that share a switch do not share one's link.
  for (std::uint32_t turn = 0; turn < gpus_per_node_; ++turn) {
    const std::uint32_t gpu = (turn + gpu_of_nic_[nic]) % gpus_per_node_;
    const auto& to_nic = node_.path(gpu, node_.nic(nic));
    const auto& own_to_nic = node_.path(own, node_.nic(nic));
    const auto& to_gpu = node_.path(own, gpu);
    const bool is_closer = to_nic.size() < own_to_nic.size();
    const bool has_nvlink = !to_gpu.empty() && node_.links()[to_gpu.back()].link_class == LinkClass::nvlink;
    if (is_closer && has_nvlink)
      return gpu;
  }
  return own;
}

void Topology::find_vertices_beside_nics() {
  for (std::uint32_t gpu = 0; gpu < gpus_per_node_; ++gpu)
    for (std::uint32_t nic = 0; nic < nics_per_node(); ++nic)
      beside_nic_.push_back(find_vertex_beside_nic(node_.gpu(gpu), nic));
}

std::uint32_t Topology::vertex_beside_nic(std::uint32_t own, std::uint32_t nic) const {
  return own < gpus_per_node_ ? beside_nic_[own * nics_per_node() + nic] : find_vertex_beside_nic(own, nic);
}

Topology::Place Topology::place_of(Rank rank) const {
  if (rank.index < ranks())
    return {rank.index / gpus_per_node_, node_.gpu(rank.index % gpus_per_node_)};
  const Host& host = hosts_[rank.index - ranks()];
  return {host.machine, node_.host(host.socket)};
}

void Topology::append_way_out(Place from, std::uint32_t nic, HopRoute& route) const {
  const std::uint32_t beside = vertex_beside_nic(from.vertex, nic);
  append_node_path(from.machine, from.vertex, beside, route);
  append_node_path(from.machine, beside, node_.nic(nic), route);
  route.links.push_back(egress({from.machine, nic}));
  route.latency += nic_links_[nic].latency;
}

void Topology::append_way_in(Place to, std::uint32_t nic, HopRoute& route) const {
  route.links.push_back(ingress({to.machine, nic}));
  const std::uint32_t arrives = vertex_beside_nic(to.vertex, nic);
  append_node_path(to.machine, node_.nic(nic), arrives, route);
  append_node_path(to.machine, arrives, to.vertex, route);
}

HopRoute Topology::hop(const Flow& flow) const {
  HopRoute route;
  route.links.reserve(usual_links_of_a_hop);
  if (first_.sending && flow.source.index < ranks())
    route.links.push_back(LinkId{*first_.sending + flow.source.index});
  const Place from = place_of(flow.source);
  const Place to = place_of(flow.destination);
  if (from.machine == to.machine) {
    append_node_path(from.machine, from.vertex, to.vertex, route);
    return route;
  }
  const std::uint32_t nic_in = nic_of_channel(flow.channel);
  const std::uint32_t nic_out = flow.exit == own_channel ? nic_in : nic_of_channel(flow.exit);
  append_way_out(from, nic_out, route);
  fabric_kind_->route(*this, {from.machine, nic_out}, {to.machine, nic_in}, route.links, route.latency);
  append_way_in(to, nic_in, route);
  route.slowest_class = LinkClass::network;
  return route;
}

std::vector<Bandwidth> Topology::capacities() const {
  std::vector<Bandwidth> result;
  result.reserve(links_.size());
  for (const Link& link : links_) result.push_back(link.bandwidth);
  return result;
}

Bandwidth Topology::share_of(LinkId link, std::int64_t crossings) const {
  const Bandwidth each = share(links_[link].bandwidth, crossings);
  if (each == Bandwidth{0})
    throw ConfigError(
        fmt::format("/cluster/machine: found {} B/s for what crosses {} {} times at once, expected at least "
                    "1 B/s for each",
                    links_[link].bandwidth.count(), link_name(link), crossings));
  return each;
}

std::string Topology::link_name(LinkId link) const {
  const auto per_node = static_cast<std::uint32_t>(node_.links().size());
  if (link.index < first_.nic) {
    const NodeLink& inside = node_.links()[link.index % per_node];
    return "node" + std::to_string(link.index / per_node) + ": " + node_.vertex_name(inside.from) + " -> " +
           node_.vertex_name(inside.to);
  }
  if (link.index < first_.compute) {
    const std::uint32_t port = (link.index - first_.nic) / 2;
    return "node" + std::to_string(port / nics_per_node()) + ": nic" +
           std::to_string(port % nics_per_node()) + ((link.index - first_.nic) % 2 == 0 ? " out" : " in");
  }
  if (link.index < first_.compute + ranks())
    return "rank " + std::to_string(link.index - first_.compute) + " compute";
  if (is_compute(link))
    return "host " + std::to_string(link.index - first_.compute - ranks()) + " memory";
  if (link.index < first_.fabric)
    return "rank " + std::to_string(link.index - *first_.sending) + " channels";
  return fabric_link_names_[link.index - first_.fabric];
}

}  // namespace lockstep
