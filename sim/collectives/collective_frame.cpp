#include "sim/collectives/collective_frame.h"

namespace lockstep {

Bytes bytes_on_the_wire(std::int64_t data, const Communicator& world, std::uint8_t protocol,
                        Ratio efficiency) {
  const Ratio of_protocol = world.protocols.empty() ? Ratio::one() : world.protocols[protocol].payload;
  return Bytes{divided_up(data, std::max(scaled_down(of_protocol, efficiency), Ratio::smallest()))};
}

CollectiveFrame::CollectiveFrame(PlanWriter& writer, const CollectiveRequest& request,
                                 std::string_view algorithm)
    : writer_(writer),
      request_(request),
      algorithm_(request.world.algorithm_index(algorithm)),
      is_ring_(algorithm == "ring"),
      ranks_(writer.representatives()) {
  open();
}

void CollectiveFrame::open() {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const OpId ready = request_.after.empty() ? no_op : request_.after[i];
    const OpId begin = writer_.take(request_.lanes[i], held_path(i), std::span(&ready, 1));
    ops_.begin.push_back(begin);
    const LaneId launching = writer_.new_channel_lane(ranks_[i]);
    launched_.push_back(writer_.delay(launching, launch_time(), std::span(&begin, 1)));
    results_.push_back({launched_.back()});
  }
}

PathId CollectiveFrame::held_path(std::size_t i) {
  return writer_.held_path(
      ranks_[i], {.channels = request_.channels, .sent = sending_speed(world(), request_.channels)});
}

// A rank alone has nobody to talk to: the library returns at once.
Duration CollectiveFrame::launch_time() const {
  if (world().ranks() < 2)
    return Duration::zero();
  const Duration own = algorithm_ == no_algorithm ? Duration::zero() : world().algorithms[algorithm_].launch;
  // Messages between pairs open channels peer by peer, which is their own cost (PeerFacts).
  const std::uint32_t channels = is_point_to_point(request_.op) ? 0 : request_.channels;
  const Duration start = own + world().channel_start * channels + own_copy_time();
  return world().protocols.empty() ? start : start + world().protocols[request_.protocol].launch;
}

// Round a ring, and between all pairs, a kernel handles n parts while the wire carries n - 1: the first is sent without
// being received or the last added without being sent (NVIDIA/nccl src/device, runRing), and a rank's part of an all-to-all
// is its own. Only where an all-gather's part lies there already is there nothing to do.
bool CollectiveFrame::passes_own_part() const {
  switch (request_.op) {
    case CollectiveOp::all_gather:
      return !request_.in_place;
    case CollectiveOp::all_reduce:
    case CollectiveOp::reduce_scatter:
      return is_ring_;
    case CollectiveOp::all_to_all:
      return true;
    default:
      return false;
  }
}

Duration CollectiveFrame::own_copy_time() const {
  const Bandwidth each = world().own_copy_channel_bandwidth;
  if (!passes_own_part() || each == Bandwidth{0})
    return Duration::zero();
  const std::int64_t parts = std::int64_t{world().ranks()} * std::max(request_.channels, 1u);
  return time_to_move(Bytes{divided_up(request_.bytes.count(), parts)}, each);
}

Ratio CollectiveFrame::efficiency() const {
  return algorithm_ == no_algorithm ? Ratio::one() : world().algorithms[algorithm_].efficiency;
}

Bytes CollectiveFrame::on_the_wire(std::int64_t data) const {
  return bytes_on_the_wire(data, world(), request_.protocol, efficiency());
}

PathId CollectiveFrame::hop(const Flow& flow, Bytes message, Duration late) {
  return writer_.hop_path({.source = flow.source,
                           .destination = flow.destination,
                           .channel = flow.channel,
                           .exit = flow.exit,
                           .protocol = request_.protocol,
                           .algorithm = algorithm_,
                           .message = world().waits_for_cores ? message : Bytes{0},
                           .late = late});
}

OpId CollectiveFrame::move(const CoupledMove& move, std::span<const OpId> after) {
  const PathId path = writer_.coupled_path({.kind = PathKind::coupled,
                                            .traffic = move.traffic,
                                            .shape = move.shape,
                                            .protocol = request_.protocol,
                                            .algorithm = algorithm_});
  const LaneId lane = writer_.new_channel_lane(ranks_.front());
  const OpId moved = writer_.transfer(lane, path, move.amount, after.empty() ? launched_ : after);
  for (auto& result : results_) result.push_back(moved);
  return moved;
}

CollectiveOps CollectiveFrame::close() {
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    ops_.end.push_back(writer_.give_back(request_.lanes[i], held_path(i), results_[i]));
  return std::move(ops_);
}

}  // namespace lockstep
