#pragma once

// What each dimension of a layout asks of the network: how often, how much, and how fast it would have to be.
//
// Problem:   the strategies of parallel training differ in how often they send what, and so in the
//            bandwidth and the latency they stand; which link a dimension should lie on follows from
//            that.
// Idea:      read off a simulated iteration. What one rank computes from when the first message of a
//            dimension is ready until the last has arrived is what its messages could run beside: their
//            bytes over that time are the bandwidth that would hide them, and what is left of it for a
//            message beside its bytes is the latency it stands.
// Invariant: gradients, parameters and activations of one dimension are told apart, since they are sent
//            at different times, and so are experts, which fewer ranks share. A message between stages
//            counts for who sends it.
// Cost:      linear in the messages of an iteration.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/run/simulate.h"

namespace lockstep {

struct DimensionCost {
  std::string dimension;
  Payload payload = Payload::gradients;
  std::uint32_t ranks = 1;    // that talk to each other
  std::int64_t messages = 0;  // of one rank in an iteration
  Bytes smallest = {};        // as nccl-tests counts them
  Bytes largest = {};
  Bytes sent = {};                      // by the rank in all
  std::string links;                    // that its messages go along
  Bandwidth link_bandwidth = {};        // what a rank can send there; zero: not known
  Duration computing = {};              // that runs from its first message to its last
  std::optional<Bandwidth> needs = {};  // to hide behind that; none: nothing runs beside it
  std::optional<Duration> stands = {};  // of latency, a message; none: its bytes alone take longer
  Duration exposed = {};                // with nothing to compute meanwhile
};

// Of the rank that ends last, in the order in which dimensions first send.
std::vector<DimensionCost> find_dimension_costs(const Scenario& scenario, const Simulation& simulation);

}  // namespace lockstep
