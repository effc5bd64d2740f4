#pragma once

// The constants of NCCL's cost model, release by release.
//
// Problem:   real curves jump where NCCL changes its mind, and where that is depends on the release.
// Idea:      one row for each release that changed something; a version between two rows is the older.
// Invariant: latencies in nanoseconds, bandwidths in MB/s (10^6), ratios of them. They choose and
//            never time: as times they are 1.3 to 3 times too optimistic.
// Reference: NVIDIA/nccl, src/graph/tuning.cc at the tags 2.8.3, 2.12.12, 2.14.3, 2.18.3, 2.20.3, 2.21.5,
//            2.23.4 and 2.28.9.

#include <array>
#include <cstdint>

#include "sim/base/units.h"

namespace lockstep {

// In the order of NCCL's own tables.
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };
using ByProtocol = std::array<std::int64_t, 3>;

// Of the GPUs with the least compute capability.
enum class GpuGeneration : std::uint8_t { volta, ampere, hopper, blackwell };

struct LinkLatencies {
  ByProtocol nvlink;
  ByProtocol pcie;
  ByProtocol network;
};

// The switch that adds and multicasts.
struct NvlsConstants {
  bool is_known;  // to the release
  std::int64_t in_node;
  std::int64_t tree_network;
  Ratio ratio;  // zero: the efficiency model
};

struct NcclConstants {
  std::int64_t since;  // NCCL_VERSION_CODE
  ByProtocol tree_base;
  ByProtocol ring_base;
  LinkLatencies tree;
  LinkLatencies ring;
  NvlsConstants nvls;
  Ratio ring_ll;  // of the graph's bandwidth; a third instead of a quarter: see the tuner
  bool ring_ll128_is_less_without_peers;  // 0.7 instead of 0.92 with one GPU a node
  bool ll_is_slower_across_nodes;         // steps inside a node cost 1.8 times as much
  bool counts_network_overhead;
  Ratio simple_ring_plateau;           // AllReduce rings between nodes, compute capability 8.0 and more
  bool plateau_counts_bytes_per_rank;  // from 4096 bytes a rank, not 64 bytes a rank and channel
  bool one_node_more_in_rings;         // an AllReduce crosses 2 N network steps instead of 2 (N - 1)
  bool has_pat;
};

// The row for a version; the oldest for versions before it.
const NcclConstants& nccl_constants(std::int64_t version_code);

// Bandwidths on 1, 2, and 3 or more nodes.
using ByNodes = std::array<std::int64_t, 3>;
ByNodes most_ll_bandwidth(GpuGeneration generation, std::int64_t version_code);
ByNodes most_ring_ll128_per_channel(GpuGeneration generation);
ByNodes most_tree_per_channel(GpuGeneration generation, std::int64_t version_code);
ByNodes most_tree_ll128_per_channel(GpuGeneration generation);
ByNodes most_nvls_tree_per_channel(GpuGeneration generation);
Ratio nvls_efficiency(GpuGeneration generation);

// What a tree loses in the middle sizes: by floor(log2(bytes / 64)); one beyond the table.
Ratio tree_correction(NcclProtocol protocol, std::int64_t bytes);

}  // namespace lockstep
