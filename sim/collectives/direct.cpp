// Direct: every rank exchanges with every other at once, each message a hop of its own.
//
// An all-to-all, gather or scatter moves S / n between two ranks and a send/recv S, as NCCL's send and
// receive in one group do. An all-gather sends the rank's own part to all, a reduce-scatter part j to rank j,
// which adds what comes; an AllReduce is the one after the other. A message leaves by the NICs beside its
// sender; what a root gathers comes by those beside the root.
//
// Time: launch + a start for each peer + the bytes on the fullest link + the latency of a hop, 2 of these for
// an AllReduce. Over one switch of bandwidth B that is (n-1)/n S/B + L. Messages alone on their channel are
// slower: a send or receive lasts no less than its bytes at the channel's own bandwidth, until that has
// lasted so long that more channels have joined in (PeerFacts).
// Reference: NVIDIA NCCL user guide, "Point-to-point communication"; Thakur, Rabenseifner and Gropp 2005.

#include <algorithm>

#include "sim/collectives/pairwise.h"

namespace lockstep {
namespace {

// Of the rank that has the most: send_recv has one to send to and one to receive from.
std::int64_t peers(const CollectiveRequest& request) {
  return request.op == CollectiveOp::send_recv ? 2 : std::int64_t{request.world.ranks()} - 1;
}

Bytes message_bytes(const CollectiveRequest& request) {
  return request.op == CollectiveOp::send_recv
             ? request.bytes
             : Bytes{divided_up(request.bytes.count(), request.world.ranks())};
}

std::vector<Flow> all_pairs(const Communicator& world) {
  const std::uint32_t ranks = world.ranks();
  MessageList list(world);
  list.reserve(std::size_t{ranks} * (ranks - 1));
  for (std::uint32_t source = 0; source < ranks; ++source)
    for (std::uint32_t distance = 1; distance < ranks; ++distance)
      list.add(Rank{source}, Rank{(source + distance) % ranks});
  return std::move(list).flows();
}

bool goes_between_all(CollectiveOp op) {
  return op != CollectiveOp::send_recv && op != CollectiveOp::gather && op != CollectiveOp::scatter;
}

std::vector<Flow> messages(const CollectiveRequest& request) {
  const std::uint32_t ranks = request.world.ranks();
  MessageList list(request.world);
  switch (request.op) {
    case CollectiveOp::send_recv:
      for (std::uint32_t rank = 0; rank < ranks; ++rank) list.add(Rank{rank}, Rank{(rank + 1) % ranks});
      break;
    case CollectiveOp::gather:
      for (std::uint32_t rank = 1; rank < ranks; ++rank) list.add_to_root(Rank{rank}, Rank{0});
      break;
    case CollectiveOp::scatter:
      for (std::uint32_t rank = 1; rank < ranks; ++rank) list.add(Rank{0}, Rank{rank});
      break;
    default:
      return all_pairs(request.world);
  }
  return std::move(list).flows();
}

// Nodes are alike, and the first has the root: the hops of its ranks are the ones to compare.
Traffic direct_traffic(const CollectiveRequest& request, std::size_t) {
  const Communicator& world = request.world;
  Traffic traffic{.flows = messages(request), .rounds = {{}}};
  std::copy_if(traffic.flows.begin(), traffic.flows.end(), std::back_inserter(traffic.rounds.front()),
               [&](const Flow& flow) {
                 return world.node_of(flow.source) == 0 || world.node_of(flow.destination) == 0;
               });
  return traffic;
}

// The second round of an AllReduce goes between the same pairs as the first.
std::vector<std::string> rounds(CollectiveOp op) {
  if (is_point_to_point(op) && op != CollectiveOp::all_to_all)
    return {"direct " + std::string(collective_op_name(op))};
  return std::vector<std::string>(op == CollectiveOp::all_reduce ? 2 : 1, "direct");
}

// Each peer costs the rank a start, one after another; the transfers follow, and beside them runs the time
// that the channels take.
std::vector<OpId> start_peers(PlanWriter& writer, const CollectiveRequest& request, CollectiveFrame& frame) {
  std::vector<OpId> started;
  for (std::size_t i = 0; i < frame.ranks().size(); ++i) {
    const OpId launched = frame.launched(i);
    const Duration starting = request.world.peer.start * peers(request);
    started.push_back(
        writer.delay(writer.new_channel_lane(frame.ranks()[i]), starting, std::span(&launched, 1)));
    frame.wait_for(
        i, writer.delay(writer.new_channel_lane(frame.ranks()[i]),
                        time_alone(request.world, message_bytes(request)), std::span(&started.back(), 1)));
  }
  return started;
}

// In a node pairs share the links as rings do; between nodes many messages meet at each NIC, which then gives the
// algorithm's part of itself.
Bytes block_on_the_wire(const CollectiveRequest& request, const CollectiveFrame& frame) {
  const std::int64_t data =
      divided_up(message_bytes(request).count(), std::int64_t{channels_per_gpu(request.world)});
  return request.world.nodes == 1 ? bytes_on_the_wire(data, request.world, request.protocol)
                                  : frame.on_the_wire(data);
}

CollectiveOps write_direct(PlanWriter& writer, const CollectiveRequest& request) {
  CollectiveFrame frame(writer, request, "direct");
  const std::int64_t ranks = request.world.ranks();
  if (goes_between_all(request.op))
    writer.expect_flows(ranks * (ranks - 1) * channels_per_gpu(request.world));
  if (frame.moves_anything())
    write_exchange(
        writer, request, frame,
        {.rounds = rounds(request.op),
         .block = block_on_the_wire(request, frame),
         .traffic = direct_traffic,
         .ready = is_point_to_point(request.op) ? start_peers(writer, request, frame) : all_launched(frame)});
  return frame.close();
}

bool supports_direct(CollectiveOp op) {
  return op != CollectiveOp::broadcast && op != CollectiveOp::reduce;
}

const Registration<Collective> direct_registration{
    "direct", {write_direct, supports_direct, "every rank exchanges with every other at once"}};

}  // namespace
}  // namespace lockstep
