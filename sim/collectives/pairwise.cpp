#include "sim/collectives/pairwise.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace lockstep {
namespace {

class ExchangeWriter {
 public:
  ExchangeWriter(PlanWriter& writer, const CollectiveRequest& request, CollectiveFrame& frame,
                 const ExchangeRounds& exchange)
      : writer_(writer), request_(request), frame_(frame), exchange_(exchange) {}

  void write_coupled() {
    std::vector<OpId> before = exchange_.ready;
    for (std::size_t round = 0; round < exchange_.rounds.size(); ++round)
      before = {frame_.move({.traffic = traffic_of(round),
                             .amount = exchange_.block,
                             .shape = {.bytes_per_hop = exchange_.block.count(),
                                       .bytes_per_step = exchange_.block.count(),
                                       .chain_steps = 1}},
                            before)};
  }

  void write_steps() {
    done_ = exchange_.ready;
    for (const Rank rank : frame_.ranks()) joining_.push_back(writer_.new_channel_lane(rank));
    for (std::size_t round = 0; round < exchange_.rounds.size(); ++round)
      write_round(exchange_.traffic(request_, round).flows);
    for (std::size_t i = 0; i < done_.size(); ++i) frame_.wait_for(i, done_[i]);
  }

 private:
  TrafficId traffic_of(std::size_t round) {
    return writer_.traffic(exchange_.rounds[round], [&] { return exchange_.traffic(request_, round); });
  }

  void write_round(const std::vector<Flow>& messages) {
    std::vector<std::vector<OpId>> taken_part(done_.size());
    for (const Flow& message : messages) {
      const OpId moved = write_message(message);
      taken_part[writer_.representative_index(message.source)].push_back(moved);
      taken_part[writer_.representative_index(message.destination)].push_back(moved);
    }
    for (std::size_t i = 0; i < done_.size(); ++i)
      if (!taken_part[i].empty())
        done_[i] = writer_.join(joining_[i], taken_part[i]);
  }

  // On a lane of its own: a round's messages go all at once.
  OpId write_message(const Flow& message) {
    const std::array both_ends{done_[writer_.representative_index(message.source)],
                               done_[writer_.representative_index(message.destination)]};
    return writer_.transfer(writer_.new_channel_lane(message.source, message.channel), frame_.hop(message),
                            exchange_.block * message.weight, both_ends);
  }

  PlanWriter& writer_;
  const CollectiveRequest& request_;
  CollectiveFrame& frame_;
  const ExchangeRounds& exchange_;
  std::vector<OpId> done_;       // by rank: the end of its last round
  std::vector<LaneId> joining_;  // by rank: where these ends are written
};

}  // namespace

void write_exchange(PlanWriter& writer, const CollectiveRequest& request, CollectiveFrame& frame,
                    const ExchangeRounds& exchange) {
  ExchangeWriter rounds(writer, request, frame, exchange);
  if (request.fidelity == Fidelity::flow)
    rounds.write_coupled();
  else
    rounds.write_steps();
}

std::vector<OpId> all_launched(const CollectiveFrame& frame) {
  std::vector<OpId> launched;
  for (std::size_t i = 0; i < frame.ranks().size(); ++i) launched.push_back(frame.launched(i));
  return launched;
}

std::uint32_t channels_per_gpu(const Communicator& world) {
  const auto rings = static_cast<std::uint32_t>(world.rings.size());
  return world.nodes > 1 ? std::max(rings / world.gpus_per_node, 1u) : 1;
}

std::vector<std::uint32_t> channels_beside(const Communicator& world, std::uint32_t local) {
  const std::uint32_t count = channels_per_gpu(world);
  const auto rings = static_cast<std::uint32_t>(world.rings.size());
  std::vector<std::uint32_t> channels;
  for (std::uint32_t ring = 0; ring < rings && channels.size() < count; ++ring)
    if (world.rings[ring].local_order.front() == local)
      channels.push_back(ring);
  if (channels.size() < count) {
    channels.resize(count);
    std::iota(channels.begin(), channels.end(), local * rings / world.gpus_per_node);
  }
  return channels;
}

Duration time_alone(const Communicator& world, Bytes message) {
  const PeerFacts& peer = world.peer;
  if (peer.channel_bandwidth == Bandwidth{0})
    return Duration::zero();
  const Bytes of_channel{divided_up(message.count(), least_channels_of_message(world))};
  return std::min(time_to_move(of_channel, peer.channel_bandwidth), peer.ramp);
}

std::int64_t bytes_per_block(const CollectiveRequest& request, std::int64_t parts) {
  return divided_up(divided_up(request.bytes.count(), channels_per_gpu(request.world)), parts);
}

MessageList::MessageList(const Communicator& world) : gpus_per_node_(world.gpus_per_node) {
  for (std::uint32_t local = 0; local < gpus_per_node_; ++local)
    channels_.push_back(channels_beside(world, local));
}

void MessageList::add(Rank source, Rank destination, std::uint32_t weight) {
  for (const std::uint32_t channel : channels_[source.index % gpus_per_node_])
    flows_.push_back({.source = source, .destination = destination, .channel = channel, .weight = weight});
}

void MessageList::add_to_root(Rank source, Rank root) {
  for (const std::uint32_t channel : channels_[root.index % gpus_per_node_])
    flows_.push_back({.source = source, .destination = root, .channel = channel});
}

}  // namespace lockstep
