#pragma once

// What NCCL's search of the topology would have found, in its own planning figures.
//
// Problem:   the tuner needs the speeds NCCL planned with, which are not what the links carry.
// Idea:      each link class has NCCL's planning bandwidth (20 of an NVLink's 25 GB/s, 24 of HDR's 25); rings
//            inside a node use every link of a GPU, rings between nodes every NIC.
// Invariant: these figures choose and never time, but for what a channel moves where a user forces too few.
// Reference: NVIDIA/nccl, src/graph/topo.h and src/graph/search.cc.

#include "sim/network/ring_search.h"

namespace lockstep {

// What a communicator uses of the topology.
struct PlannedUse {
  std::size_t rings = 1;            // inside a node
  std::vector<std::uint32_t> nics;  // of a node
  std::uint32_t gpus_per_node = 1;
};
PlanningFacts plan_as_nccl(const Topology& topology, const WorldOptions& options, const PlannedUse& use);

// The library uses the NICs closest to its GPUs: those of GPUs that are not in use stay idle. A machine with
// NICs has at least one.
std::uint32_t nics_in_use(const Topology& topology, const MachineSpec& machine);

// What a channel, one SM, moves at most; none where NCCL does not run. Its search doubles rings that plan
// 25 GB/s or more, 50 past compute capability 8.0 (ncclTopoDupChannels), and then runs each on two channels
// (ncclTopoPostset), to have as many SMs as the links need.
std::optional<Bandwidth> most_per_channel(std::int64_t compute_capability);

// NVLS: the GPUs' switch adds and multicasts (third generation, compute capability 9.0).
bool has_multicast(const MachineSpec& machine, std::int64_t compute_capability);

}  // namespace lockstep
