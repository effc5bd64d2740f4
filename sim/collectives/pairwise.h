#pragma once

// Messages between pairs of ranks, round by round.
//
// Problem:   halving and doubling, Bruck's rounds and an all-to-all differ only in who sends whom how much.
// Idea:      an algorithm states its rounds as flows, their weights in blocks. A message moves once both its
//            ends have done with the rounds before, as a rendezvous makes it. At fidelity `step` every
//            message is a transfer; at `flow` a round is one coupled transfer, late by its dearest hop.
// Invariant: a message waits for all that its sender has received in earlier rounds, and both fidelities
//            move the same bytes over every link.
// Cost:      an op for each message and a join for each rank and round; at `flow` an op for each round.

#include <string>
#include <vector>

#include "sim/collectives/collective_frame.h"
#include "sim/plan/message_channels.h"

namespace lockstep {

struct ExchangeRounds {
  std::vector<std::string> rounds;  // their traffics' names: the algorithm and all that they depend on
  Bytes block;                      // on the wire, what a flow of weight one carries
  // Who sends to whom in a round; `Traffic::rounds` holds one list, the hops among which the dearest is.
  Traffic (*traffic)(const CollectiveRequest& request, std::size_t round);
  std::vector<OpId> ready;  // by representative: when it may send and receive
};

// Appends the exchange to the collective that `frame` has opened; every result waits for it.
void write_exchange(PlanWriter& writer, const CollectiveRequest& request, CollectiveFrame& frame,
                    const ExchangeRounds& exchange);

// `launched` of every representative.
std::vector<OpId> all_launched(const CollectiveFrame& frame);

// How many channels the messages of one GPU are split over: its share of the NICs, since inside a node a
// channel changes nothing.
std::uint32_t channels_per_gpu(const Communicator& world);

// Those channels: of the rings that enter the node at that GPU, whose NICs are beside it; a GPU where too few
// do is dealt its share of all rings.
std::vector<std::uint32_t> channels_beside(const Communicator& world, std::uint32_t local);

// How long a message would take if no more channels joined those it starts on.
Duration time_alone(const Communicator& world, Bytes message);

// A request's bytes in `parts` blocks on each of these channels, rounded up.
std::int64_t bytes_per_block(const CollectiveRequest& request, std::int64_t parts);

// The flows of a round: every message is split over the channels beside its sender, or beside the receiver that all
// go to, who takes nothing in but by its own NICs.
class MessageList {
 public:
  explicit MessageList(const Communicator& world);

  void reserve(std::size_t messages) { flows_.reserve(messages * channels_.front().size()); }
  void add(Rank source, Rank destination, std::uint32_t weight = 1);
  void add_to_root(Rank source, Rank root);
  std::vector<Flow> flows() && { return std::move(flows_); }

 private:
  std::uint32_t gpus_per_node_;
  std::vector<std::vector<std::uint32_t>> channels_;  // by local index
  std::vector<Flow> flows_;
};

}  // namespace lockstep
