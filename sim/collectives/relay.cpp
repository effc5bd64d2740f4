// Relay: what goes to a node goes there once, to the GPU of the sender's index, which hands it on inside.
//
// An all-to-all of S takes S / N to each of N nodes, and N S / n from each GPU of a node to each other one. Of tokens
// that several experts get, the copies for one node travel as one, and inside it those for one GPU: with k copies a
// token and q(p) the share of tokens that visit one of p parts of the experts, S/k q(N) and N S/k q(n). Both go on at
// once, chunk by chunk: of C chunks a node hands one on while the next comes.
//
// Time: launch + a chunk on the NIC + (C-1) times the longer of a chunk on the NIC and one inside the node + a chunk
// inside + C + 1 hops.
// Reference: DeepSeek's DeepEP, README (normal kernels: NVLink and RDMA forwarding) and csrc/kernels/internode.cu;
//            the same library's HybridEP; NCCL's PXN for messages that meet nothing on their way.

#include "sim/collectives/relay.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

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

// What goes at a time from one rank to a node, and from one GPU to another: `unit` as often as these say.
struct RelayChunk {
  Bytes unit;
  std::int64_t to_node = 0;
  std::int64_t inside = 0;
};

constexpr std::int64_t most_relay_chunks = 4;

std::int64_t relay_chunks(const CollectiveRequest& request) {
  if (request.world.nodes == 1 || request.world.gpus_per_node == 1)
    return 1;
  return std::clamp<std::int64_t>(request.bytes.count() / simple_slot.count(), 1, most_relay_chunks);
}

// Whole numbers of a unit, exact where few do.
RelayChunk relay_chunk(const CollectiveRequest& request) {
  constexpr std::int64_t most_units = 64;
  const Communicator& world = request.world;
  const std::int64_t parts = relay_chunks(request) * channels_per_gpu(world);
  const std::int64_t to_node = world.nodes > 1 ? divided_up(sent_to(request, world.nodes).count(), parts) : 0;
  const std::int64_t inside =
      world.gpus_per_node > 1 ? divided_up(sent_to(request, world.ranks()).count() * world.nodes, parts) : 0;
  const std::int64_t exact = std::max<std::int64_t>(std::gcd(to_node, inside), 1);
  const std::int64_t unit = std::max(exact, divided_up(std::max(to_node, inside), most_units));
  return {.unit = Bytes{unit}, .to_node = divided_up(to_node, unit), .inside = divided_up(inside, unit)};
}

void add_between_nodes(const Communicator& world, std::uint32_t weight, MessageList& list) {
  for (std::uint32_t node = 0; node < world.nodes; ++node)
    for (std::uint32_t distance = 1; distance < world.nodes; ++distance)
      for (std::uint32_t local = 0; local < world.gpus_per_node; ++local)
        list.add(world.rank_at(node, local), world.rank_at((node + distance) % world.nodes, local), weight);
}

void add_in_nodes(const Communicator& world, std::uint32_t weight, MessageList& list) {
  const std::uint32_t gpus = world.gpus_per_node;
  for (std::uint32_t node = 0; node < world.nodes; ++node)
    for (std::uint32_t local = 0; local < gpus; ++local)
      for (std::uint32_t distance = 1; distance < gpus; ++distance)
        list.add(world.rank_at(node, local), world.rank_at(node, (local + distance) % gpus), weight);
}

// In the first round nothing has come that could be handed on, in the last nothing is left to send.
struct RelayRound {
  bool sends = false;
  bool hands_on = false;
};

RelayRound relay_round(const CollectiveRequest& request, std::int64_t round) {
  if (request.world.nodes == 1)
    return {.hands_on = true};
  return {.sends = round<relay_chunks(request), .hands_on = request.world.gpus_per_node> 1 && round > 0};
}

// Nodes are alike: the hops out of the first are the ones to compare.
Traffic relay_traffic(const CollectiveRequest& request, std::size_t number) {
  const Communicator& world = request.world;
  const RelayChunk chunk = relay_chunk(request);
  const RelayRound round = relay_round(request, static_cast<std::int64_t>(number));
  MessageList list(world);
  if (round.sends)
    add_between_nodes(world, static_cast<std::uint32_t>(chunk.to_node), list);
  if (round.hands_on)
    add_in_nodes(world, static_cast<std::uint32_t>(chunk.inside), list);
  Traffic traffic{.flows = std::move(list).flows(), .rounds = {{}}};
  for (const Flow& flow : traffic.flows)
    if (world.node_of(flow.source) == 0)
      traffic.rounds.front().push_back(flow);
  return traffic;
}

std::vector<std::string> relay_rounds(const CollectiveRequest& request) {
  const RelayChunk chunk = relay_chunk(request);
  const bool has_both = request.world.nodes > 1 && request.world.gpus_per_node > 1;
  std::vector<std::string> names;
  for (std::int64_t number = 0; number < relay_chunks(request) + (has_both ? 1 : 0); ++number) {
    const RelayRound round = relay_round(request, number);
    names.push_back("relay " + std::to_string(round.sends ? chunk.to_node : 0) + " " +
                    std::to_string(round.hands_on ? chunk.inside : 0));
  }
  return names;
}

CollectiveOps write_relay(PlanWriter& writer, const CollectiveRequest& request) {
  CollectiveFrame frame(writer, request, relay_algorithm);
  if (frame.moves_anything())
    write_exchange(writer, request, frame,
                   {.rounds = relay_rounds(request),
                    .block = frame.on_the_wire(relay_chunk(request).unit.count()),
                    .traffic = relay_traffic,
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
