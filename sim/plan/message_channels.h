#pragma once

// Over how many channels a message between a pair of ranks is split from the start.
//
// Problem:   a message on one channel is slow, and on all of them leaves none to the other peers.
// Idea:      NCCL shares all channels (a power of two) out to all peers, a power of two each.
// Invariant: at least one.
// Reference: NVIDIA/nccl src/enqueue.cc (nChannelsMin).

#include <algorithm>
#include <bit>

#include "sim/plan/communicator.h"

namespace lockstep {

inline std::int64_t least_channels_of_message(const Communicator& world) {
  const std::uint32_t all = std::bit_ceil(std::max(world.channels(), 1u));
  return std::bit_floor(std::max(all / world.ranks(), 1u));
}

}  // namespace lockstep
