#pragma once

// Which parameter server holds which variable.
//
// Problem:   a round lasts as long as the server with the most bytes, and a variable is pulled and pushed as
//            one message.
// Idea:      three rules of the frameworks: dealt in turn (tf.train.replica_device_setter), each to the server
//            with the least bytes so far (tf_cnn_benchmarks, GreedyLoadBalancingStrategy by bytes), or cut
//            into pieces that are dealt in turn (BytePS).
// Invariant: the shards of a gradient add up to its bytes. In registration order; of servers with equally few
//            bytes the first is taken.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/training/job.h"

namespace lockstep {

struct Shard {
  std::uint32_t gradient = 0;
  std::uint32_t server = 0;
  Bytes bytes;
};

// A gradient that is added to others: both are read and the sum is written.
inline constexpr std::int64_t passes_to_add = 3;

std::vector<Shard> place_shards(std::span<const Gradient> gradients, const ServerSpec& servers);

// What a server keeps: one that updates its variables and the optimizer's states; one that adds gradients up, because it
// does nothing else or because a round has many, their sums.
struct ServerMemory {
  Bytes variables;
  Bytes sums;
  Bytes states;

  Bytes total() const { return variables + sums + states; }
};

std::vector<ServerMemory> server_memory(const Job& job);  // by server

}  // namespace lockstep
