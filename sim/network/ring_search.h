#pragma once

// The rings a library would run over the ranks of a communicator.
//
// Problem:   a ring is as fast as its slowest hop. On a mesh such as the DGX-1's cube it must follow NVLinks,
//            and several rings must not lean on the same ones; between nodes each NIC should carry one.
// Idea:      inside a node the cycles that share no link (hamilton.h), each in both directions of its
//            full-duplex links; round a switch one order will do. Between nodes every NIC has a ring that
//            comes in by it. A ring leaves by the same NIC where the links bear it; on a mesh whose links do
//            not, it leaves by another, so that it needs a path through the mesh only and not a cycle.
// Invariant: a ring passes every GPU of a node once; every NIC in use takes in one ring and lets out one.
// Cost:      the search of hamilton.h, twice a communicator at most.
// Reference: NVIDIA/nccl src/graph/search.cc: rings that keep to a NIC are tried first, and others taken if
//            these are faster (NCCL_CROSS_NIC=2, its default). ROCm/rccl src/graph/rome_models.cc: on the
//            MI300X eight rings that enter by one NIC and leave by another.

#include <cstdint>
#include <optional>
#include <string>

#include "sim/network/topology.h"
#include "sim/plan/communicator.h"
#include "sim/plan/group.h"

namespace lockstep {

struct WorldOptions {
  const MachineSpec& machine;
  const Calibration& calibration;
  std::int64_t compute_capability = 0;        // 90 is 9.0
  std::optional<std::int64_t> channels = {};  // as NCCL_MAX_NCHANNELS and NCCL_MIN_NCHANNELS force it
  std::int64_t library_version = 0;           // NCCL_VERSION_CODE; 0: the newest known
};

// All ranks, and what the chooser of their library may know.
Communicator find_world(const Topology& topology, const WorldOptions& options);

// The lines of a mesh over all ranks, each with the communicator its members would form: they sit at the same
// GPUs of every node that they are on.
GroupSet find_groups(const Topology& topology, const WorldOptions& options, const Mesh& mesh,
                     const GroupAxes& wanted);
// The same of groups that are told rank by rank.
GroupSet find_groups(const Topology& topology, const WorldOptions& options, ListedGroups wanted);

// How many cycles were found, and whether there can be more, for people.
std::string describe(const MeshCycles& cycles);

}  // namespace lockstep
