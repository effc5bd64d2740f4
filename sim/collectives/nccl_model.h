#pragma once

// NCCL's cost model: what it expects of an algorithm and a protocol.
//
// Problem:   NCCL chooses by estimates of its own, which are neither what links carry nor what runs measure.
// Idea:      an estimate is a bandwidth over the algorithm's bytes and a latency: formulas of the shape of the
//            communicator, its planning figures and the constants of a release, one function an algorithm.
// Invariant: it knows no links and times nothing; what it does not allow has no bandwidth.
// Reference: NVIDIA/nccl, src/graph/tuning.cc; versions in nccl_constants.h.

#include <cstdint>

#include "sim/collectives/nccl_constants.h"
#include "sim/collectives/nccl_tuner.h"

namespace lockstep {

// MB/s of the algorithm's own bytes, nanoseconds.
struct NcclEstimate {
  std::int64_t bandwidth = 0;  // zero: not allowed
  std::int64_t latency = 0;
};

// What the formulas look at.
struct NcclCase {
  explicit NcclCase(const TunerRequest& request);

  CollectiveOp op;
  std::int64_t bytes;
  std::int64_t version_code;
  const NcclConstants& constants;
  const PlanningFacts& planning;
  GpuGeneration generation;
  std::int64_t ranks;
  std::int64_t nodes;
  std::int64_t per_node;
  std::int64_t channels;
  bool can_multicast;

  bool is_all_reduce() const { return op == CollectiveOp::all_reduce; }
  bool is_rooted() const { return op == CollectiveOp::broadcast || op == CollectiveOp::reduce; }
};

NcclEstimate ring_estimate(const NcclCase& asked, NcclProtocol protocol);
NcclEstimate tree_estimate(const NcclCase& asked, NcclProtocol protocol);
NcclEstimate nvls_estimate(const NcclCase& asked);
NcclEstimate nvls_tree_estimate(const NcclCase& asked);
NcclEstimate pat_estimate(const NcclCase& asked);

}  // namespace lockstep
