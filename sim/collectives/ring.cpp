// The ring: an AllReduce is a reduce-scatter then an all-gather, n - 1 steps each, every rank sending one
// chunk of S / n to its neighbour per step. With several rings each carries an equal part of S.
//
// A step may start when the rank's previous send has left and the chunk of the step before has arrived from
// the other side. Between nodes the narrowest link never rests, so the time is 2(n-1) chunks on it plus one
// latency, unless going round the ring is slower still.
// Chunks are padded to equal size, as NCCL's are: ring_steps rounds S / n up.
//
// Broadcast and reduce are pipelines along the ring; their many small chunks are one coupled transfer at
// both fidelities.

#include <algorithm>

#include "sim/collectives/collective_frame.h"

namespace lockstep {
namespace {

bool is_pipeline(CollectiveOp op) {
  return op == CollectiveOp::broadcast || op == CollectiveOp::reduce;
}

class RingWriter {
 public:
  RingWriter(PlanWriter& writer, const CollectiveRequest& request)
      : writer_(writer), request_(request), world_(request.world), frame_(writer, request, "ring") {}

  CollectiveOps write() {
    if (frame_.moves_anything()) {
      if (request_.fidelity == Fidelity::flow || is_pipeline(request_.op))
        write_coupled();
      else
        write_steps();
    }
    return frame_.close();
  }

 private:
  void write_coupled() {
    const RingSteps steps = wire_steps();
    const bool pipelined = is_pipeline(request_.op);
    const Bytes chained = pipelined ? steps.bytes : steps.bytes * steps.count;
    // Run back to back, a pipeline's next message leaves before its last one has arrived everywhere.
    const bool hides_chain = pipelined && request_.back_to_back;
    const TrafficId traffic =
        writer_.traffic(traffic_key(hides_chain), [&] { return ring_traffic(hides_chain); });
    frame_.move({.traffic = traffic,
                 .amount = pipelined ? frame_.on_the_wire(per_ring() + unhidden(hides_chain)) : chained,
                 .shape = {.bytes_per_hop = chained.count(),
                           .bytes_per_step = steps.bytes.count(),
                           .chain_steps = steps.count}});
  }

  // A network proxy serves one operation at a time: the last chunk of a message has left it before the first
  // of the next is posted, as if it were sent one chunk longer.
  std::int64_t unhidden(bool hides_chain) const {
    return hides_chain && world_.nodes > 1 ? std::min(per_ring(), simple_slot.count()) : 0;
  }

  std::string traffic_key(bool hides_chain) const {
    if (!is_pipeline(request_.op))
      return "ring";
    return "ring " + std::string(collective_op_name(request_.op)) + (hides_chain ? "s" : "");
  }

  // A pipeline does not close the ring: nothing goes to the root of a broadcast or from that of a reduce.
  std::vector<Flow> used_flows() const {
    std::vector<Flow> flows = ring_flows(world_);
    const Rank root{0};
    // Between nodes all are taken as alike, so that one can stand for the others.
    if (world_.nodes > 1)
      return flows;
    if (request_.op == CollectiveOp::broadcast)
      std::erase_if(flows, [&](const Flow& flow) { return flow.destination == root; });
    if (request_.op == CollectiveOp::reduce)
      std::erase_if(flows, [&](const Flow& flow) { return flow.source == root; });
    return flows;
  }

  // Nodes are alike: a chain of messages meets the same hops in each, so one node's stretch is its round.
  Traffic ring_traffic(bool hides_chain) const {
    Traffic traffic{.flows = used_flows(), .rounds = {}};
    for (std::uint32_t ring = 0; ring < world_.rings.size() && !hides_chain; ++ring) {
      std::vector<Flow>& round = traffic.rounds.emplace_back();
      for (const std::uint32_t local : world_.rings[ring].local_order)
        round.push_back(world_.flow(ring, Rank{local}));
    }
    return traffic;
  }

  std::int64_t per_ring() const {
    return divided_up(request_.bytes.count(), static_cast<std::int64_t>(world_.rings.size()));
  }

  RingSteps wire_steps() const {
    const RingSteps data = ring_steps(request_);
    return {data.count, frame_.on_the_wire(data.bytes.count())};
  }

  void write_steps() {
    for (std::uint32_t ring = 0; ring < world_.rings.size(); ++ring) write_ring(ring, wire_steps());
  }

  // A rank hands on what the one before it on the ring has sent in the step before.
  void write_ring(std::uint32_t ring, const RingSteps& steps) {
    const std::span<const Rank> ranks = frame_.ranks();
    std::vector<OpId> relays;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const LaneId lane = writer_.new_channel_lane(ranks[i], ring);
      const PathId path = frame_.hop(world_.flow(ring, ranks[i]), steps.bytes);
      const OpId launched = frame_.launched(i);
      relays.push_back(writer_.relay(lane, path, steps.bytes, steps.count, std::span(&launched, 1)));
    }
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const OpId feeder = relays[writer_.representative_index(world_.previous(ring, ranks[i]))];
      writer_.feed(relays[i], feeder);
      frame_.wait_for(i, relays[i]);
      frame_.wait_for(i, feeder);
    }
  }

  PlanWriter& writer_;
  const CollectiveRequest& request_;
  const Communicator& world_;
  CollectiveFrame frame_;
};

CollectiveOps write_ring(PlanWriter& writer, const CollectiveRequest& request) {
  return RingWriter(writer, request).write();
}

bool supports_ring(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_reduce:
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce:
      return true;
    default:
      return false;
  }
}

const Registration<Collective> ring_registration{
    "ring",
    {write_ring, supports_ring, "reduce-scatter and all-gather round rings, n - 1 steps each", nullptr,
     true}};

}  // namespace

RingSteps ring_steps(const CollectiveRequest& request) {
  const auto ranks = static_cast<std::int64_t>(request.world.ranks());
  const auto rings = static_cast<std::int64_t>(request.world.rings.size());
  const std::int64_t per_ring = divided_up(request.bytes.count(), rings);
  if (is_pipeline(request.op)) {
    const std::int64_t chunk = std::min(per_ring, simple_slot.count());
    return {ranks - 1, Bytes{chunk}};
  }
  const std::int64_t rounds = request.op == CollectiveOp::all_reduce ? 2 : 1;
  return {rounds * (ranks - 1), Bytes{divided_up(per_ring, ranks)}};
}

}  // namespace lockstep
