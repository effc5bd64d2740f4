#include "sim/training/shards.h"

#include <doctest/doctest.h>

namespace lockstep::shards_test {

std::vector<Gradient> gradients(std::initializer_list<std::int64_t> sizes) {
  std::vector<Gradient> list;
  for (const std::int64_t size : sizes) list.push_back({.name = "g", .bytes = Bytes{size}});
  return list;
}

std::vector<std::uint32_t> servers_of(const std::vector<Shard>& shards) {
  std::vector<std::uint32_t> servers;
  for (const Shard& shard : shards) servers.push_back(shard.server);
  return servers;
}

using Servers = std::vector<std::uint32_t>;

TEST_CASE("Variables are dealt in turn") {
  const auto shards =
      place_shards(gradients({5, 1, 1, 9}), {.count = 3, .placement = ShardPlacement::round_robin});
  CHECK(servers_of(shards) == Servers{0, 1, 2, 0});
}

TEST_CASE("Each variable goes to the server with the least bytes so far") {
  // 5 | 1 | 1, then 9 to the first of the two with 1, then 2 to the other.
  const auto shards =
      place_shards(gradients({5, 1, 1, 9, 2}), {.count = 3, .placement = ShardPlacement::greedy});
  CHECK(servers_of(shards) == Servers{0, 1, 2, 1, 2});
}

TEST_CASE("A server that updates keeps variables, sums and states, one that only adds the sums") {
  Job job;
  job.gradients = gradients({40, 12});
  for (Gradient& gradient : job.gradients) gradient.element_bytes = 4;
  job.training.optimizer = Optimizer::adam;
  job.training.strategy = "ps_sync";
  job.training.parameter_server.servers = {.count = 2, .placement = ShardPlacement::round_robin};
  const std::vector<ServerMemory> updating = server_memory(job);
  CHECK(updating[0].variables == Bytes{40});
  CHECK(updating[0].states == Bytes{2 * 40});
  CHECK(updating[1].total() == Bytes{4 * 12});
  job.training.strategy = "ps_async";  // whose updates are of one worker each
  CHECK(server_memory(job)[1].total() == Bytes{3 * 12});
  job.training.parameter_server.servers.updates_weights = false;
  CHECK(server_memory(job)[0].total() == Bytes{40});
}

TEST_CASE("Pieces of a variable are dealt in turn and add up to it") {
  const auto shards = place_shards(
      gradients({10, 4}), {.count = 2, .placement = ShardPlacement::partitioned, .partition = Bytes{4}});
  CHECK(servers_of(shards) == Servers{0, 1, 0, 1});  // 4 + 4 + 2, then 4
  CHECK(shards[2].bytes == Bytes{2});
  CHECK(shards[3].gradient == 1);
}

}  // namespace lockstep::shards_test
