#include "sim/training/shards.h"

#include <algorithm>

namespace lockstep {
namespace {

std::uint32_t least_loaded(const std::vector<Bytes>& loads) {
  return static_cast<std::uint32_t>(std::min_element(loads.begin(), loads.end()) - loads.begin());
}

}  // namespace

std::vector<Shard> place_shards(std::span<const Gradient> gradients, const ServerSpec& servers) {
  const auto count = static_cast<std::uint32_t>(servers.count);
  std::vector<Bytes> loads(count);
  std::vector<Shard> shards;
  const auto add = [&](std::uint32_t gradient, Bytes bytes) {
    const auto turn = static_cast<std::uint32_t>(shards.size() % count);
    const std::uint32_t server = servers.placement == ShardPlacement::greedy ? least_loaded(loads) : turn;
    loads[server] += bytes;
    shards.push_back({gradient, server, bytes});
  };
  for (std::uint32_t gradient = 0; gradient < gradients.size(); ++gradient) {
    Bytes left = gradients[gradient].bytes;
    for (; servers.placement == ShardPlacement::partitioned && left > servers.partition;
         left -= servers.partition)
      add(gradient, servers.partition);
    add(gradient, left);
  }
  return shards;
}

}  // namespace lockstep
