#pragma once

// What writers may know about the ranks that talk to each other: who sits where, the rings found on the
// links, and plain figures to choose an algorithm and a protocol by.
//
// Invariant: figures here choose; they never time a message. What a collective leaves to kernels beside it is
//            told by the speed that it was planned with.
// Cost:      neighbours are computed from one node's order, so 100,000 ranks need no table.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/plan/plan.h"

namespace lockstep {

// A ring visits the ranks of a node in `local_order`, then goes on to the next node. Each ring carries an
// equal part of the bytes; `channels` is how many of the library's channels run along it. It comes into a node
// by its own NIC, and leaves by that of ring `exit`.
struct RingPattern {
  std::vector<std::uint32_t> local_order;
  std::vector<std::uint32_t> position;  // inverse of local_order
  std::uint32_t channels = 1;
  std::uint32_t exit = own_channel;
  bool operator==(const RingPattern&) const = default;
};

RingPattern ring_pattern(std::vector<std::uint32_t> local_order, std::uint32_t channels);

// A protocol as its chooser sees it.
struct ProtocolFacts {
  std::string name;
  Ratio payload = Ratio::one();
  Duration launch;        // fixed cost of a collective on its stream
  Duration step;          // fixed cost of a step over the slowest class of hop
  Duration step_in_node;  // and over a hop inside a node
  bool operator==(const ProtocolFacts&) const = default;
};

// An algorithm's own costs, in the order of the calibration's.
struct AlgorithmFacts {
  std::string name;
  Duration launch;
  Ratio efficiency = Ratio::one();
  bool operator==(const AlgorithmFacts&) const = default;
};

// What messages between pairs cost (see PeerCost).
struct PeerFacts {
  Duration start;
  Bandwidth channel_bandwidth;  // zero: no limit of its own
  Duration ramp;
  bool operator==(const PeerFacts&) const = default;
};

// What NCCL's search of the topology would have found, as its tuner reads it: planned speeds of all channels
// together.
struct PlanningFacts {
  std::int64_t compute_capability = 0;  // 80 is 8.0; 0: no CUDA device
  bool has_amd_host = false;
  bool has_nvlink = true;             // between all GPUs of a node
  bool has_near_nics = true;          // GPU and NIC meet below one PCIe switch
  Bandwidth in_node = {};             // of rings inside a node
  Bandwidth between_nodes = {};       // of rings that cross nodes
  Bandwidth multicast_per_head = {};  // NVLS
  std::vector<std::string> protocols = {};  // left to choose among; none said: all
  bool operator==(const PlanningFacts&) const = default;
};

// Cycles through a node's mesh that share no link: how many the search found, and how many there can be.
struct MeshCycles {
  std::uint32_t found = 0;
  std::uint32_t bound = 0;
  bool are_most = true;  // proven; else the best within the search's budget of steps
  bool operator==(const MeshCycles&) const = default;
};

struct Communicator {
  std::uint32_t nodes = 1;
  std::uint32_t gpus_per_node = 1;
  std::vector<RingPattern> rings;
  MeshCycles mesh_cycles;          // where GPUs are joined pair by pair
  bool switch_multicasts = false;  // the node's NVSwitch adds and multicasts (NVLink SHARP)
  bool network_reduces = false;    // the switches between nodes add (SHARP)
  std::vector<ProtocolFacts> protocols;
  std::vector<AlgorithmFacts> algorithms;
  Duration channel_start;  // each channel in use costs a collective so much
  // At which each channel passes over a rank's own part; zero: takes no time.
  Bandwidth own_copy_channel_bandwidth = {};
  // At which each channel hands on what came from one rank to the next, half its threads; zero: takes no time.
  Bandwidth hand_on_channel_bandwidth = {};
  PeerFacts peer;
  Bytes least_message = {};  // what a ring's slowest hop carries while a NIC waits before its next message
  bool waits_for_cores = false;  // what a message gets of a rank's core depends on its length
  PlanningFacts planning;
  Bandwidth ring_bandwidth;  // what the slowest hop of one ring can carry

  std::uint32_t channels() const;
  // Index into `algorithms`; no_algorithm where nothing is known of it.
  std::uint8_t algorithm_index(std::string_view name) const;
  std::uint32_t ranks() const { return nodes * gpus_per_node; }
  std::uint32_t node_of(Rank rank) const { return rank.index / gpus_per_node; }
  std::uint32_t local_of(Rank rank) const { return rank.index % gpus_per_node; }
  Rank rank_at(std::uint32_t node, std::uint32_t local) const { return Rank{node * gpus_per_node + local}; }
  Rank next(std::uint32_t ring, Rank rank) const;
  Rank previous(std::uint32_t ring, Rank rank) const;
  // What `rank` sends to the next on the ring.
  Flow flow(std::uint32_t ring, Rank rank) const;
  bool operator==(const Communicator&) const = default;
};

// What a rank sends on so many of its channels, as the communicator plans: each ring's part of its slowest hop.
Bandwidth sending_speed(const Communicator& world, std::uint32_t channels);

// Every rank to the next on every ring: what rings move at once.
std::vector<Flow> ring_flows(const Communicator& world);

}  // namespace lockstep
