#pragma once

// What writers may know about the ranks that talk to each other: who sits where, the rings found on the
// links, and plain figures to choose an algorithm and a protocol by.
//
// Invariant: figures here choose; they never time.
// Cost:      neighbours are computed from one node's order, so 100,000 ranks need no table.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/plan/plan.h"

namespace lockstep {

// A ring visits the ranks of a node in `local_order`, then goes on to the next node. Each ring carries an
// equal part of the bytes; `channels` is how many of the library's channels run along it.
struct RingPattern {
  std::vector<std::uint32_t> local_order;
  std::vector<std::uint32_t> position;  // inverse of local_order
  std::uint32_t channels = 1;
};

RingPattern ring_pattern(std::vector<std::uint32_t> local_order, std::uint32_t channels);

// A protocol as its chooser sees it.
struct ProtocolFacts {
  std::string name;
  std::int64_t payload_ppm = 1'000'000;
  Duration launch;        // fixed cost of a collective on its stream
  Duration step;          // fixed cost of a step over the slowest class of hop
  Duration step_in_node;  // and over a hop inside a node
};

struct Communicator {
  std::uint32_t nodes = 1;
  std::uint32_t gpus_per_node = 1;
  std::vector<RingPattern> rings;
  std::vector<ProtocolFacts> protocols;
  Bandwidth ring_bandwidth;  // what the slowest hop of one ring can carry

  std::uint32_t channels() const;
  std::uint32_t ranks() const { return nodes * gpus_per_node; }
  std::uint32_t node_of(Rank rank) const { return rank.index / gpus_per_node; }
  std::uint32_t local_of(Rank rank) const { return rank.index % gpus_per_node; }
  Rank rank_at(std::uint32_t node, std::uint32_t local) const { return Rank{node * gpus_per_node + local}; }
  Rank next(std::uint32_t ring, Rank rank) const;
  Rank previous(std::uint32_t ring, Rank rank) const;
};

}  // namespace lockstep
