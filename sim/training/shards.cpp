#include "sim/training/shards.h"

#include <algorithm>

#include "sim/training/memory.h"
#include "sim/training/strategy.h"

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

std::vector<ServerMemory> server_memory(const Job& job) {
  const ServerSpec& spec = job.training.parameter_server.servers;
  const bool is_asynchronous = strategy_named(job.training.strategy).is_asynchronous;
  std::vector<ServerMemory> servers(static_cast<std::size_t>(spec.count));
  for (const Shard& shard : place_shards(job.gradients, spec)) {
    ServerMemory& server = servers[shard.server];
    if (!spec.updates_weights || !is_asynchronous)
      server.sums += shard.bytes;
    if (!spec.updates_weights)
      continue;
    const std::int64_t elements = shard.bytes.count() / job.gradients[shard.gradient].element_bytes;
    server.variables += shard.bytes;
    server.states += Bytes{elements * 4 * states_per_parameter(job.training.optimizer)};
  }
  return servers;
}

}  // namespace lockstep
