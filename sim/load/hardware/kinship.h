#pragma once

// How far apart two machines are, as far as a library that moves data on them can tell.
//
// Problem:   a machine that was never measured borrows from one that was; which one must follow from what
//            they are made of, and the user must read how far that is.
// Idea:      a sum of whole points, one term for each thing that decides what a library gets of a wire: the
//            library, its release, the makers and the architectures of the GPUs, what joins them inside a
//            node, the NICs. Each term that is not nothing is said in words, "here instead of there".
// Invariant: no name of a machine counts; a candidate that is nearer in one term and as near in all others
//            is nearer. An architecture weighs more than a NIC's rate, another way through the node more than
//            any architecture, since it changes what the constants mean. Points rank candidates; nothing is
//            computed from them.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/network/machine.h"

namespace lockstep {

// A machine with the software that runs, or ran, on it.
struct Relative {
  MachineSpec machine;
  std::int64_t compute_capability = 0;  // 90 is 9.0; 0: no CUDA device
  LibraryKind library = LibraryKind::nccl;
  std::int64_t library_version = 0;  // NCCL_VERSION_CODE; 0: not known
  bool knows_network = true;         // it was, or is to be, more than one node
};

struct Kinship {
  std::int64_t distance = 0;
  std::vector<std::string> differences;  // "nvlink5 instead of nvlink4"
  // Data goes another way: what was fitted there has no word on some of the links here.
  bool is_other_kind = false;
};

// `here` borrows what was fitted `there`.
Kinship find_kinship(const Relative& here, const Relative& there);

// What a GPU sends to the others of its node at most: through its NVLinks or its PCIe; zero: not known.
Bandwidth bandwidth_in_node(const MachineSpec& machine);
// Of the fastest NIC; zero: there is none.
Bandwidth nic_bandwidth(const MachineSpec& machine);

}  // namespace lockstep
