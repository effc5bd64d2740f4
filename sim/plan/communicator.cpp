#include "sim/plan/communicator.h"

#include <algorithm>

namespace lockstep {

RingPattern ring_pattern(std::vector<std::uint32_t> local_order, std::uint32_t channels) {
  RingPattern pattern{.local_order = std::move(local_order), .position = {}, .channels = channels};
  pattern.position.resize(pattern.local_order.size());
  for (std::uint32_t place = 0; place < pattern.local_order.size(); ++place)
    pattern.position[pattern.local_order[place]] = place;
  return pattern;
}

std::uint32_t Communicator::channels() const {
  std::uint32_t sum = 0;
  for (const RingPattern& ring : rings) sum += ring.channels;
  return sum;
}

Bandwidth sending_speed(const Communicator& world, std::uint32_t channels) {
  const std::int64_t all = std::max<std::int64_t>(world.channels(), 1);
  const Bandwidth on_all = world.ring_bandwidth * static_cast<std::int64_t>(world.rings.size());
  return share(on_all, all) * std::min<std::int64_t>(channels, all);
}

Rank Communicator::next(std::uint32_t ring, Rank rank) const {
  const RingPattern& pattern = rings[ring];
  const std::uint32_t place = pattern.position[local_of(rank)] + 1;
  if (place < gpus_per_node)
    return rank_at(node_of(rank), pattern.local_order[place]);
  return rank_at((node_of(rank) + 1) % nodes, pattern.local_order.front());
}

Rank Communicator::previous(std::uint32_t ring, Rank rank) const {
  const RingPattern& pattern = rings[ring];
  const std::uint32_t place = pattern.position[local_of(rank)];
  if (place > 0)
    return rank_at(node_of(rank), pattern.local_order[place - 1]);
  return rank_at((node_of(rank) + nodes - 1) % nodes, pattern.local_order.back());
}

Flow Communicator::flow(std::uint32_t ring, Rank rank) const {
  return {.source = rank, .destination = next(ring, rank), .channel = ring, .exit = rings[ring].exit};
}

std::uint8_t Communicator::algorithm_index(std::string_view name) const {
  for (std::uint8_t index = 0; index < algorithms.size(); ++index)
    if (algorithms[index].name == name)
      return index;
  return no_algorithm;
}

std::vector<Flow> ring_flows(const Communicator& world) {
  std::vector<Flow> flows;
  if (world.ranks() < 2)
    return flows;
  flows.reserve(world.rings.size() * world.ranks());
  for (std::uint32_t ring = 0; ring < world.rings.size(); ++ring)
    for (std::uint32_t rank = 0; rank < world.ranks(); ++rank) flows.push_back(world.flow(ring, Rank{rank}));
  return flows;
}

}  // namespace lockstep
