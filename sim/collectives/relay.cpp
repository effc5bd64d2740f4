// Relay: what goes to a node goes there once, to the GPU of the sender's index, which hands it on inside.
//
// An all-to-all of S takes S / N to each of N nodes, and N S / n from each GPU of a node to each other one. Of tokens
// that several experts get, the copies for one node travel as one, and inside it those for one GPU: with k copies a
// token and q(p) the share of tokens that visit one of p parts of the experts, S/k q(N) and N S/k q(n). Both go on at
// once, chunk by chunk: of C chunks a node hands one on while the next comes. Three rounds: the first chunk comes, all
// others come while those before them are handed on, the last is handed on.
//
// Time: launch + a chunk on the NIC + (C-1) times the longer of a chunk on the NIC and one inside the node + a chunk
// inside + 3 hops.
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

// As many as fill the library's buffers, where there is anything to do while the next one comes.
std::int64_t relay_chunks(const CollectiveRequest& request) {
  return std::max<std::int64_t>(request.bytes.count() / simple_slot.count(), 1);
}

// A chunk, from one rank to a node and from one GPU to another: `unit` as often as these say.
struct RelayChunk {
  Bytes unit;
  std::int64_t to_node = 0;
  std::int64_t inside = 0;
};

// Whole numbers of a unit, exact where few do.
RelayChunk relay_chunk(const CollectiveRequest& request, std::int64_t chunks) {
  constexpr std::int64_t most_units = 64;
  const Communicator& world = request.world;
  const std::int64_t parts = chunks * channels_per_gpu(world);
  const std::int64_t to_node = world.nodes > 1 ? divided_up(sent_to(request, world.nodes).count(), parts) : 0;
  const std::int64_t inside =
      world.gpus_per_node > 1 ? divided_up(sent_to(request, world.ranks()).count() * world.nodes, parts) : 0;
  const std::int64_t exact = std::max<std::int64_t>(std::gcd(to_node, inside), 1);
  const std::int64_t unit = std::max(exact, divided_up(std::max(to_node, inside), most_units));
  return {.unit = Bytes{unit}, .to_node = divided_up(to_node, unit), .inside = divided_up(inside, unit)};
}

// In chunks.
struct RelayRound {
  std::int64_t sent = 0;
  std::int64_t handed_on = 0;
};

struct Relay {
  RelayChunk chunk;
  std::vector<RelayRound> rounds;
};

Relay relay_of(const CollectiveRequest& request) {
  const bool has_nodes = request.world.nodes > 1;
  const bool has_gpus = request.world.gpus_per_node > 1;
  if (!has_nodes || !has_gpus)
    return {.chunk = relay_chunk(request, 1), .rounds = {{.sent = has_nodes, .handed_on = has_gpus}}};
  const std::int64_t chunks = relay_chunks(request);
  Relay relay{.chunk = relay_chunk(request, chunks), .rounds = {{.sent = 1}}};
  if (chunks > 1)
    relay.rounds.push_back({.sent = chunks - 1, .handed_on = chunks - 1});
  relay.rounds.push_back({.handed_on = 1});
  return relay;
}

void add_between_nodes(const Communicator& world, std::int64_t units, MessageList& list) {
  for (std::uint32_t node = 0; node < world.nodes; ++node)
    for (std::uint32_t distance = 1; distance < world.nodes; ++distance)
      for (std::uint32_t local = 0; local < world.gpus_per_node; ++local)
        list.add(world.rank_at(node, local), world.rank_at((node + distance) % world.nodes, local),
                 static_cast<std::uint32_t>(units));
}

void add_in_nodes(const Communicator& world, std::int64_t units, MessageList& list) {
  const std::uint32_t gpus = world.gpus_per_node;
  for (std::uint32_t node = 0; node < world.nodes; ++node)
    for (std::uint32_t local = 0; local < gpus; ++local)
      for (std::uint32_t distance = 1; distance < gpus; ++distance)
        list.add(world.rank_at(node, local), world.rank_at(node, (local + distance) % gpus),
                 static_cast<std::uint32_t>(units));
}

// Nodes are alike: the hops out of the first are the ones to compare.
Traffic relay_traffic(const CollectiveRequest& request, std::size_t number) {
  const Communicator& world = request.world;
  const Relay relay = relay_of(request);
  const RelayRound& round = relay.rounds[number];
  MessageList list(world);
  if (round.sent > 0)
    add_between_nodes(world, relay.chunk.to_node * round.sent, list);
  if (round.handed_on > 0)
    add_in_nodes(world, relay.chunk.inside * round.handed_on, list);
  Traffic traffic{.flows = std::move(list).flows(), .rounds = {{}}};
  for (const Flow& flow : traffic.flows)
    if (world.node_of(flow.source) == 0)
      traffic.rounds.front().push_back(flow);
  return traffic;
}

std::vector<std::string> names_of(const Relay& relay) {
  std::vector<std::string> names;
  for (const RelayRound& round : relay.rounds)
    names.push_back("relay " + std::to_string(relay.chunk.to_node * round.sent) + " " +
                    std::to_string(relay.chunk.inside * round.handed_on));
  return names;
}

CollectiveOps write_relay(PlanWriter& writer, const CollectiveRequest& request) {
  CollectiveFrame frame(writer, request, relay_algorithm);
  if (!frame.moves_anything())
    return frame.close();
  const Relay relay = relay_of(request);
  write_exchange(writer, request, frame,
                 {.rounds = names_of(relay),
                  .block = frame.on_the_wire(relay.chunk.unit.count()),
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
