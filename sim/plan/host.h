#pragma once

// Host memory as an end point of messages.
//
// Problem:   parameter servers, loaders and copies to the CPU send and receive where no GPU is.
// Idea:      a host that takes part is a rank as well: host i is the i-th rank after all GPUs', so that lanes,
//            kernels and hops name it like any other. Its kernels are work on its memory.
// Invariant: hosts belong to no communicator and stand for nobody else.

#include <cstdint>

namespace lockstep {

// One socket's memory. Machines from the number of nodes onwards have no GPU at work: they are servers.
struct Host {
  std::uint32_t machine = 0;
  std::uint32_t socket = 0;
  bool operator==(const Host&) const = default;
};

}  // namespace lockstep
