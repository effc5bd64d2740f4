#include "sim/collectives/message.h"

#include "sim/collectives/pairwise.h"

namespace lockstep {
namespace {

Bytes wire_bytes_of_channel(const MessageRequest& request) {
  const std::int64_t data = divided_up(request.bytes.count(), channels_per_gpu(request.world));
  return bytes_on_the_wire(data, request.world, request.protocol);
}

Duration start_time(const MessageRequest& request) {
  const Communicator& world = request.world;
  const Duration launch =
      world.protocols.empty() ? Duration::zero() : world.protocols[request.protocol].launch;
  return launch + world.peer.start;
}

OpId move_at_flow(PlanWriter& writer, const MessageRequest& request, OpId started) {
  const std::string key =
      "message " + std::to_string(request.from.index) + " to " + std::to_string(request.to.index);
  const TrafficId traffic = writer.traffic(key, [&] {
    const std::vector<Flow> flows = message_flows(request.world, request.from, request.to);
    return Traffic{.flows = flows, .rounds = {flows}};
  });
  const Bytes bytes = wire_bytes_of_channel(request);
  const PathId path = writer.coupled_path(
      {.kind = PathKind::coupled,
       .traffic = traffic,
       .shape = {.bytes_per_hop = bytes.count(), .bytes_per_step = bytes.count(), .chain_steps = 1},
       .protocol = request.protocol});
  return writer.transfer(writer.new_channel_lane(request.from), path, bytes, std::span(&started, 1));
}

std::vector<OpId> move_by_steps(PlanWriter& writer, const MessageRequest& request, OpId started) {
  std::vector<OpId> moved;
  const Bytes bytes = wire_bytes_of_channel(request);
  for (const Flow& flow : message_flows(request.world, request.from, request.to)) {
    const PathId path = writer.hop_path({.source = flow.source,
                                         .destination = flow.destination,
                                         .channel = flow.channel,
                                         .exit = flow.exit,
                                         .protocol = request.protocol});
    moved.push_back(writer.transfer(writer.new_channel_lane(flow.source, flow.channel), path, bytes,
                                    std::span(&started, 1)));
  }
  return moved;
}

PathId held_path(PlanWriter& writer, const MessageRequest& request) {
  const std::uint32_t channels = channels_per_gpu(request.world);
  return writer.held_path(request.from,
                          {.channels = channels, .sent = sending_speed(request.world, channels)});
}

}  // namespace

std::vector<Flow> message_flows(const Communicator& world, Rank from, Rank to) {
  MessageList list(world);
  list.add(from, to);
  return std::move(list).flows();
}

MessageOps write_message(PlanWriter& writer, const MessageRequest& request) {
  const PathId held = held_path(writer, request);
  MessageOps ops{.begin = writer.take(request.lane, held, std::span(&request.after, 1))};
  const OpId started =
      writer.delay(writer.new_channel_lane(request.from), start_time(request), std::span(&ops.begin, 1));
  std::vector<OpId> moved = request.fidelity == Fidelity::flow
                                ? std::vector{move_at_flow(writer, request, started)}
                                : move_by_steps(writer, request, started);
  moved.push_back(writer.delay(writer.new_channel_lane(request.from),
                               time_alone(request.world, request.bytes), std::span(&started, 1)));
  ops.end = writer.give_back(request.lane, held, moved);
  return ops;
}

}  // namespace lockstep
