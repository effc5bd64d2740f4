#pragma once

// What a dump of one machine's topology says, whoever printed it.
//
// Problem:   nvidia-smi prints a matrix of words, NCCL a tree of PCI bridges, rocm-smi lists of pairs; a machine's profile
//            is made of the same facts each time.
// Idea:      plain data, in the terms that nvidia-smi and NCCL share; `machine_document` makes a profile of them.
// Invariant: what was not said is empty, zero or unknown, never a default. Matrices are square, symmetric, and in the
//            order of GPUs; every NIC has one path to each GPU.
// Reference: legend of nvidia-smi topo -m; NVIDIA/nccl, src/graph/topo.h (PATH_PIX, PATH_PXB, PATH_PHB, PATH_SYS).

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/load/import/importer.h"

namespace lockstep {

inline constexpr std::size_t most_imported_devices = 256;  // GPUs, and NICs: what a machine's reader takes

// From near to far. pix, pxb: below one root port; phb, node: within one NUMA node.
enum class PciePath : std::uint8_t { pix, pxb, phb, node, sys, unknown };

inline bool is_below_one_port(PciePath path) {
  return path == PciePath::pix || path == PciePath::pxb;
}

struct NicFacts {
  std::string name;               // "mlx5_0"
  std::vector<PciePath> to_gpus;  // to each
  std::string link = {};          // a shipped link's name, where rate and kind of network are said
  std::string rate = {};          // as said, for messages: "400000 Mbit/s"
};

struct MachineFacts {
  std::string library = "nccl";  // of the vendor of its GPUs
  std::size_t gpus = 0;
  std::vector<std::string> gpu_names = {};                 // as drivers or PCI ids call them; none: not said
  std::string compute_capability = {};                     // "8.0"
  std::vector<std::vector<std::int64_t>> peer_links = {};  // NVLinks or xGMI links between each pair
  std::int64_t switch_links = 0;                           // of each GPU, to NVSwitches
  bool shows_peer_links = true;                            // else it prints PCIe alone
  std::vector<std::vector<PciePath>> gpu_paths = {};  // over PCIe; unknown where NVLinks are printed instead
  std::vector<std::int64_t> numa = {};                // node of each GPU; -1: not said
  bool has_nics = false;                              // whether this kind of dump names NICs at all
  std::vector<NicFacts> nics = {};
  std::int64_t sockets = 0;
  std::string socket_link = {};  // shipped links' names
  std::string pcie = {};
  std::vector<std::string> warnings = {};
};

// The whole text of a dump. Throws ConfigError above 4 MiB: a node's own takes kilobytes.
std::string read_dump(const ImportRequest& request);

// NICs that some GPU is nearest to, each with those GPUs; in the order of these. Alike near ones are dealt out to the
// GPUs that share them, as NCCL's ncclTopoGetLocalNet does.
struct PlacedNic {
  std::size_t nic = 0;
  std::vector<std::int64_t> gpus;
};
std::vector<PlacedNic> place_nics(const MachineFacts& facts);

// The GPUs below each root port that some device shares with another; who is in none was not seen to share.
std::vector<std::vector<std::int64_t>> find_pcie_switches(const MachineFacts& facts);

// How many sockets the NUMA nodes of GPUs show; 0: cannot be told.
std::int64_t count_sockets(const std::vector<std::int64_t>& numa);

}  // namespace lockstep
