#pragma once

// A machine and a fabric as their profiles state them: what is plugged into what, how fast, how far.
//
// Idea:      plain structs that mirror the JSON of hw_profiles/; what a library gets out of a wire is
//            calibration and stands apart.
// Invariant: load has checked them: names exist, matrices are symmetric, counts are positive.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/plan/library.h"

namespace lockstep {

enum class LinkClass : std::uint8_t { nvlink, pcie, socket, network };

// One direction. `bandwidth` is what the wire carries; what a library gets out of it is calibration.
struct LinkSpec {
  std::string name;
  std::string source;
  Bandwidth bandwidth;
  Duration latency;
  LinkClass link_class = LinkClass::network;
  std::optional<Bandwidth> nccl_bandwidth;  // what NCCL plans with, where it is known to differ
  std::vector<std::string> protocols = {};  // a NIC's: what its software leaves NCCL; none said: all
  bool operator==(const LinkSpec&) const = default;
};

enum class GpuLinkKind : std::uint8_t { none, nvswitch, mesh, pcie };

struct GpuLinks {
  GpuLinkKind kind = GpuLinkKind::none;
  LinkSpec link;
  std::int64_t links_per_gpu = 0;                 // nvswitch
  std::vector<std::vector<std::int64_t>> matrix;  // mesh: links between each pair, symmetric
  bool operator==(const GpuLinks&) const = default;
};

struct HostSpec {
  std::int64_t sockets = 1;
  std::optional<LinkSpec> socket_link;
  std::optional<LinkSpec> pcie;
  std::vector<std::vector<std::int64_t>> pcie_switches;  // GPUs below each switch
  std::optional<Bandwidth> memory_bandwidth = {};        // of one socket
  std::optional<Duration> operator_time = {};  // of a framework, on one core; 0: it is never behind
  bool peer_to_peer = true;  // else what GPUs send each other over PCIe goes through host memory
  bool operator==(const HostSpec&) const = default;
};

struct NicSpec {
  LinkSpec link;
  std::vector<std::int64_t> gpus;  // the GPUs it is close to
  bool operator==(const NicSpec&) const = default;
};

struct Price {
  double usd_per_gpu_hour = 0;
  std::string date;
  std::string source;
  bool operator==(const Price&) const = default;
};

struct MachineSpec {
  std::string name;
  std::string source;
  std::string gpu;
  std::int64_t gpus = 1;
  GpuLinks gpu_links;
  HostSpec host;
  std::vector<NicSpec> nics;
  LibraryKind library = LibraryKind::nccl;
  std::optional<Price> price;
  bool operator==(const MachineSpec&) const = default;
};

// `kind` names an entry of Registry<FabricKind> (topologies/*.cpp).
struct FabricSpec {
  std::string name;
  std::string kind = "single_switch";
  std::string source;
  double oversubscription = 1;
  Duration hop_latency;
  std::int64_t ports_per_leaf = 32;
  bool in_network_reduction = false;  // its switches add (SHARP), and the library may let them
  std::vector<std::int64_t> dims;     // torus
  std::int64_t groups = 0;            // dragonfly, and the next two
  std::int64_t routers_per_group = 0;
  std::int64_t nodes_per_router = 0;
  // graph: switches by name, and links "nodeN.nicM" or switch to another
  struct GraphLink {
    std::string from;
    std::string to;
    LinkSpec link;
    bool operator==(const GraphLink&) const = default;
  };
  std::vector<std::string> switches;
  std::vector<GraphLink> links;
  bool operator==(const FabricSpec&) const = default;
};

}  // namespace lockstep
