// Relay: what goes to a node goes there once, to the GPU of the sender's index, which hands it on inside.
//
// An all-to-all of S takes S / N to each of N nodes, and N S / n from each GPU of a node to each other one. Of tokens
// that several experts get, the copies for one node travel as one, and inside it those for one GPU: with k copies a
// token and q(p) the share of tokens that visit one of p parts of the experts, S/k q(N) and N S/k q(n). Both go on at
// once, chunk by chunk; that a node's last chunk is handed on after the others is left out.
//
// Time: launch + the longer of (N-1) S/N on the NIC and (g-1) N S/n inside the node, + the latency of a hop.
// Reference: DeepSeek's DeepEP, README (normal kernels: NVLink and RDMA forwarding) and csrc/kernels/internode.cu;
//            the same library's HybridEP; NCCL's PXN for messages that meet nothing on their way.

#include "sim/collectives/relay.h"

#include "sim/collectives/pairwise.h"

namespace lockstep {
namespace {

// What one rank sends to one node, or hands on to one GPU of its own, of what all of `parts` are sent.
Bytes sent_to(const CollectiveRequest& request, std::int64_t parts) {
  const TokenRouting& routing = request.routing;
  if (routing.per_token == 0)
    return Bytes{divided_up(request.bytes.count(), parts)};
  const std::int64_t once = divided_up(request.bytes.count(), routing.per_token);
  return Bytes{scaled_up(once, visited_share(routing, parts))};
}

Bytes block_of(const CollectiveFrame& frame, Bytes message) {
  return frame.on_the_wire(divided_up(message.count(), std::int64_t{channels_per_gpu(frame.world())}));
}

// Nodes are alike: the hops out of the first are the ones to compare.
Traffic with_first_node(const Communicator& world, MessageList list) {
  Traffic traffic{.flows = std::move(list).flows(), .rounds = {{}}};
  for (const Flow& flow : traffic.flows)
    if (world.node_of(flow.source) == 0)
      traffic.rounds.front().push_back(flow);
  return traffic;
}

Traffic traffic_between_nodes(const CollectiveRequest& request, std::size_t) {
  const Communicator& world = request.world;
  MessageList list(world);
  for (std::uint32_t node = 0; node < world.nodes; ++node)
    for (std::uint32_t distance = 1; distance < world.nodes; ++distance)
      for (std::uint32_t local = 0; local < world.gpus_per_node; ++local)
        list.add(world.rank_at(node, local), world.rank_at((node + distance) % world.nodes, local));
  return with_first_node(world, std::move(list));
}

Traffic traffic_in_nodes(const CollectiveRequest& request, std::size_t) {
  const Communicator& world = request.world;
  const std::uint32_t gpus = world.gpus_per_node;
  MessageList list(world);
  for (std::uint32_t node = 0; node < world.nodes; ++node)
    for (std::uint32_t local = 0; local < gpus; ++local)
      for (std::uint32_t distance = 1; distance < gpus; ++distance)
        list.add(world.rank_at(node, local), world.rank_at(node, (local + distance) % gpus));
  return with_first_node(world, std::move(list));
}

CollectiveOps write_relay(PlanWriter& writer, const CollectiveRequest& request) {
  CollectiveFrame frame(writer, request, relay_algorithm);
  const Communicator& world = request.world;
  if (!frame.moves_anything())
    return frame.close();
  if (world.nodes > 1)
    write_exchange(writer, request, frame,
                   {.rounds = {"relay between nodes"},
                    .block = block_of(frame, sent_to(request, world.nodes)),
                    .traffic = traffic_between_nodes,
                    .ready = all_launched(frame)});
  if (world.gpus_per_node > 1)
    write_exchange(writer, request, frame,
                   {.rounds = {"relay in nodes"},
                    .block = block_of(frame, sent_to(request, world.ranks()) * world.nodes),
                    .traffic = traffic_in_nodes,
                    .ready = all_launched(frame)});
  return frame.close();
}

bool supports_relay(CollectiveOp op) {
  return op == CollectiveOp::all_to_all;
}

const Registration<Collective> relay_registration{
    std::string(relay_algorithm),
    {write_relay, supports_relay, "what goes to a node goes there once and is handed on inside it"}};

}  // namespace
}  // namespace lockstep
