#pragma once

// The lanes on which messages between GPUs, their hosts and parameter servers travel.
//
// Problem:   a message from a GPU to a server on another machine is a copy to the host, a message between
//            hosts and, where the server keeps its variables on a GPU, a copy to that.
// Idea:      each GPU has a copy engine a direction, each pair of hosts a connection a direction; all of them
//            take what is ready, lowest priority number first, one message at a time. A host's own work and
//            a server's handlers are lanes too.
// Invariant: lanes are made once a run and stand in `Carried`, so that an iteration finds them as the one
//            before left them; carried ops are the strategy's own.
// Cost:      two lanes a GPU, one a pair of hosts, one a handler.

#include <cstdint>
#include <vector>

#include "sim/training/strategy.h"

namespace lockstep {

// Where the hosts that servers need are: one of each node, then those of the servers that are not there.
std::vector<Host> server_hosts(const ServerSpec& servers, const ClusterShape& shape);

// Of servers on GPUs, which one: dealt to the nodes in turn, on each to its GPUs in order.
Rank gpu_of_server(std::uint32_t server, std::uint32_t nodes, std::uint32_t gpus_per_node);

class MessageLanes {
 public:
  explicit MessageLanes(const StrategyContext& context);

  // The rank that holds a server's variables, and the host that speaks for a rank.
  Rank server(std::uint32_t server) const;
  Rank node_host(Rank rank) const;

  // A lane for what a host does besides, and one for each handler of a server.
  LaneId host_work(Rank host) const;
  LaneId handler(std::uint32_t server, std::uint32_t handler) const;
  std::uint32_t handlers_per_server() const { return handlers_; }

  struct Parcel {
    Bytes bytes;
    std::uint32_t priority = 0;
  };
  // From rank to rank, hosts or GPUs; returns the op that ends when the other end has it.
  OpId send(Rank from, Rank to, const Parcel& parcel, OpId after) const;
  // Between the GPUs of a node: each gets from each of the others its part, all at once.
  OpId exchange_in_node(std::uint32_t node, const Parcel& parcel, std::span<const OpId> after) const;

 private:
  void make_lanes();
  bool is_host(Rank rank) const { return rank.index >= gpus_; }
  std::uint32_t machine_of(Rank rank) const;
  OpId transfer(LaneId lane, Rank from, Rank to, const Parcel& parcel, std::span<const OpId> after) const;
  LaneId lane_between(Rank from, Rank to) const;

  const StrategyContext& context_;
  std::uint32_t gpus_;
  std::uint32_t gpus_per_node_;
  std::uint32_t nodes_;
  std::uint32_t hosts_;
  std::uint32_t handlers_;  // of a server
};

}  // namespace lockstep
