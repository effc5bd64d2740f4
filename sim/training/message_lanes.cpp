#include "sim/training/message_lanes.h"

#include <limits>
#include <string>

#include "sim/base/check.h"

namespace lockstep {
namespace {

constexpr std::uint32_t any_number = std::numeric_limits<std::uint32_t>::max();
// Host messages are no steps of a library's protocol.
constexpr std::uint8_t no_protocol = 0xff;

// Who holds a server's lock works alone; handlers of different variables do not wait for each other.
std::uint32_t handlers_of(const ServerSpec& servers) {
  return servers.update == UpdateLock::locked ? 1 : static_cast<std::uint32_t>(servers.threads);
}

}  // namespace

std::vector<Host> server_hosts(const ServerSpec& servers, const ClusterShape& shape) {
  std::vector<Host> hosts;
  for (std::uint32_t node = 0; node < shape.nodes; ++node) hosts.push_back({.machine = node});
  const auto count = static_cast<std::uint32_t>(servers.count);
  if (servers.on == ServerPlace::machines)
    for (std::uint32_t server = 0; server < count; ++server)
      hosts.push_back({.machine = shape.nodes + server});
  if (servers.on == ServerPlace::cpu)
    for (std::uint32_t server = shape.nodes; server < count; ++server)
      hosts.push_back({.machine = server % shape.nodes, .socket = server / shape.nodes});
  return hosts;
}

Rank gpu_of_server(std::uint32_t server, std::uint32_t nodes, std::uint32_t gpus_per_node) {
  return Rank{server % nodes * gpus_per_node + server / nodes};
}

MessageLanes::MessageLanes(const StrategyContext& context)
    : context_(context),
      gpus_(context.cluster.gpus()),
      gpus_per_node_(context.cluster.gpus_per_node),
      nodes_(context.cluster.nodes),
      hosts_(static_cast<std::uint32_t>(context.cluster.hosts.size())),
      handlers_(handlers_of(context.job.training.parameter_server.servers)) {
  if (context.carried.lanes.empty())
    make_lanes();
}

// In this order: copies to the host and back by GPU, work by host, connections by pair of hosts, handlers.
void MessageLanes::make_lanes() {
  const ServerSpec& servers = context_.job.training.parameter_server.servers;
  std::vector<LaneId>& lanes = context_.carried.lanes;
  const auto make = [&](Rank rank, LaneKind kind, std::uint32_t index, std::uint32_t slots) {
    lanes.push_back(context_.writer.lane(
        {.rank = rank, .kind = kind, .index = index, .slots = slots, .discipline = Discipline::when_ready}));
  };
  for (const std::uint32_t direction : {0u, 1u})
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) make(Rank{gpu}, LaneKind::copy, direction, 1);
  for (std::uint32_t host = 0; host < hosts_; ++host)
    make(context_.cluster.host(host), LaneKind::copy, 0, any_number);
  for (std::uint32_t from = 0; from < hosts_; ++from)
    for (std::uint32_t to = 0; to < hosts_; ++to)
      make(context_.cluster.host(from), LaneKind::copy, 1 + to, 1);
  const std::uint32_t slots = servers.update == UpdateLock::lock_free ? any_number : 1;
  for (std::uint32_t server = 0; server < servers.count; ++server)
    for (std::uint32_t handler = 0; handler < handlers_; ++handler)
      make(this->server(server), LaneKind::host, server, slots);
}

Rank MessageLanes::server(std::uint32_t server) const {
  switch (context_.job.training.parameter_server.servers.on) {
    case ServerPlace::cpu:
      return context_.cluster.host(server);
    case ServerPlace::machines:
      return context_.cluster.host(nodes_ + server);
    case ServerPlace::gpu:
      break;
  }
  return gpu_of_server(server, nodes_, gpus_per_node_);
}

Rank MessageLanes::node_host(Rank rank) const {
  return is_host(rank) ? rank : context_.cluster.host(rank.index / gpus_per_node_);
}

LaneId MessageLanes::host_work(Rank host) const {
  return context_.carried.lanes[2 * gpus_ + host.index - gpus_];
}

LaneId MessageLanes::handler(std::uint32_t server, std::uint32_t handler) const {
  return context_.carried.lanes[2 * gpus_ + hosts_ + hosts_ * hosts_ + server * handlers_ + handler];
}

std::uint32_t MessageLanes::machine_of(Rank rank) const {
  return is_host(rank) ? context_.cluster.hosts[rank.index - gpus_].machine : rank.index / gpus_per_node_;
}

// A GPU's copy engine where a GPU takes part, else the connection between the two hosts.
LaneId MessageLanes::lane_between(Rank from, Rank to) const {
  if (!is_host(from))
    return context_.carried.lanes[from.index];
  if (!is_host(to))
    return context_.carried.lanes[gpus_ + to.index];
  return context_.carried.lanes[2 * gpus_ + hosts_ + (from.index - gpus_) * hosts_ + to.index - gpus_];
}

OpId MessageLanes::transfer(LaneId lane, Rank from, Rank to, const Parcel& parcel,
                            std::span<const OpId> after) const {
  const PathId path = context_.writer.hop_path(
      {.source = from, .destination = to, .channel = to.index, .protocol = no_protocol});
  const OpId op = context_.writer.transfer(lane, path, parcel.bytes, after);
  if (parcel.priority > 0)
    context_.writer.prioritise(op, parcel.priority);
  return op;
}

OpId MessageLanes::send(Rank from, Rank to, const Parcel& parcel, OpId after) const {
  if (from == to)
    return after;
  if (machine_of(from) == machine_of(to) || (is_host(from) && is_host(to)))
    return transfer(lane_between(from, to), from, to, parcel, std::span(&after, 1));
  if (!is_host(from))
    return send(node_host(from), to, parcel, send(from, node_host(from), parcel, after));
  return send(node_host(to), to, parcel, send(from, node_host(to), parcel, after));
}

OpId MessageLanes::exchange_in_node(std::uint32_t node, const Parcel& parcel,
                                    std::span<const OpId> after) const {
  const Rank first{node * gpus_per_node_};
  const Rank host = context_.cluster.host(node);
  if (gpus_per_node_ == 1)
    return context_.writer.join(host_work(host), after);
  const TrafficId everyone =
      context_.writer.traffic("everyone to everyone on node " + std::to_string(node), [&] {
        Traffic traffic;
        for (std::uint32_t from = 0; from < gpus_per_node_; ++from)
          for (std::uint32_t to = 0; to < gpus_per_node_; ++to)
            if (from != to)
              traffic.flows.push_back(
                  {.source = Rank{first.index + from}, .destination = Rank{first.index + to}});
        return traffic;
      });
  const PathId path = context_.writer.coupled_path(
      {.kind = PathKind::coupled, .rank = first, .traffic = everyone, .protocol = no_protocol});
  const Bytes part = divided_up(parcel.bytes, gpus_per_node_);
  const OpId op = context_.writer.transfer(lane_between(host, host), path, part, after);
  context_.writer.prioritise(op, parcel.priority);
  return op;
}

}  // namespace lockstep
