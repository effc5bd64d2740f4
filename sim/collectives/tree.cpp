// The double binary tree: an AllReduce adds up a tree and sends the sum down again. Each channel splits its
// part over two trees (rank_tree.h): binary between the nodes, a chain of GPUs in each node. One node is the
// chain alone.
//
// Chunk by chunk: a rank sends a chunk up when it has that chunk from all below, and down when it has it from
// above, the root when it has it from all below. Up and down run at the same time. With D hops from the
// deepest rank to the root and back, each a chunk u and a latency L, and k chunks, the time is the longer of
//
//   D (u + L) + (k - 1) u                  streams that never meet on a link, and
//   (D - 3) (u + L) + 2 k u + L            streams that share the links next to the root,
//
// or, of two nodes, whose NICs are the root's own links, one hop more: (D - 2) (u + L) + 2 k u + L.
//
// Two children share their parent's NIC. A NIC carries 2 S: a node inside one tree sends S / 2 up and S / 2
// to each of two children, and S / 2 up as a leaf of the other.
//
// A chunk is what NCCL hands on at a time. Of Simple it is a whole slot, or less where a pipeline of few slots would be
// deeper than long, and a rank has it in hand for as long as half a channel's threads take to copy it: L is that much
// longer. The lines of LL and LL128 move on as they come, in 64 groups at most, and at fidelity `step` slots do likewise: a
// finer pipeline saves less than the walk's share, and plans stay small.
//
// At fidelity `flow` one coupled transfer moves all bytes, from when the first chunk is next to the root:
// there the stream up and the stream down share a link first and part last. Transfers of no bytes price the
// levels before and after, and beside it what streams take that never meet: the whole part, down one level.
// What fits into one line of LL (the sum of all norms, say) takes the levels' time alone and loads no link: then ranks
// are alike whose links are no nearer each other in the tree, as long as its hops are as long.
//
// NCCL runs broadcast and reduce on rings only, and so does Lockstep.
// Reference: Sanders, Speck and Traff 2009; NVIDIA/nccl src/device/all_reduce.h, runTreeSplit, and src/enqueue.cc.

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <optional>

#include "sim/collectives/collective_frame.h"
#include "sim/collectives/double_binary_tree.h"
#include "sim/collectives/rank_tree.h"

namespace lockstep {
namespace {

constexpr std::int64_t most_chunks = 64;
constexpr Bytes line_of_ll{512 * 8};  // what all threads of a channel send at once

// As NCCL counts the levels of a tree when it cuts chunks.
std::int64_t counted_depth(const Communicator& world) {
  return world.gpus_per_node - 1 + std::bit_width(world.nodes) - 1;
}

// Of a slot of Simple's buffer: NCCL halves it while there are few for the levels, down to a quarter willingly, below less
// so. Where it would be halved no more there were twice as many just before: from there chunks grow until there are as many
// whole ones, so that more bytes never take less.
std::int64_t simple_chunk(const CollectiveRequest& request) {
  struct Shrinking {
    std::int64_t chunks_a_level;
    std::int64_t least;
  };
  constexpr std::int64_t slot = simple_slot.count();
  constexpr std::array shrinkings{Shrinking{8, slot / 4}, Shrinking{4, slot / 8}, Shrinking{1, slot / 16}};
  const std::int64_t of_channel = request.bytes.count() / std::max<std::int64_t>(request.channels, 1);
  const std::int64_t depth = counted_depth(request.world);
  std::int64_t chunk = slot;
  for (const Shrinking& shrinking : shrinkings)
    while (of_channel / chunk < depth * shrinking.chunks_a_level && chunk > shrinking.least) chunk /= 2;
  for (const Shrinking& shrinking : shrinkings)
    if (chunk > shrinking.least)
      return std::min(chunk, divided_up(of_channel, 2 * depth * shrinking.chunks_a_level));
  return chunk;
}

// Data that one channel hands on at a time. The flags of LL and LL128 go with the data, so that a line moves on as it
// comes: of LL128 what 640 threads send at once, 60 bytes each. A slot, which is a message, is many of these.
std::int64_t chunk_of(const ProtocolFacts& protocol, const CollectiveRequest& request) {
  if (protocol.name == "ll")
    return line_of_ll.count();
  if (protocol.name == "ll128")
    return 640 * 60;
  return simple_chunk(request);
}

// Bytes on the wire: the first `longer_count` chunks are longer than the rest. With more bytes none of them
// may shrink, or the last would have come sooner.
struct Chunks {
  std::int64_t count;
  std::int64_t longer_count;
  Bytes longer;
  Bytes shorter;

  Bytes at(std::int64_t index) const { return index < longer_count ? longer : shorter; }
  Bytes all() const { return longer * longer_count + shorter * (count - longer_count); }
};

enum class Direction : std::uint8_t { up, down };

// What runs over an edge at fidelity `step`, and the current chunk's messages.
struct EdgeOps {
  LaneId up_lane;
  LaneId down_lane;
  PathId up_path;
  PathId down_path;
  OpId up = no_op;
  OpId down = no_op;
};

class TreeWriter {
 public:
  TreeWriter(PlanWriter& writer, const CollectiveRequest& request)
      : writer_(writer),
        request_(request),
        world_(request.world),
        frame_(writer, request, "tree"),
        protocol_(world_.protocols.empty() ? ProtocolFacts{} : world_.protocols[request.protocol]),
        comes_by_lines_(protocol_.name.starts_with("ll")),
        time_in_hand_(find_time_in_hand()) {}

  CollectiveOps write() {
    if (frame_.moves_anything()) {
      if (request_.fidelity == Fidelity::flow)
        write_coupled(chunks());
      else
        for_each_tree([&](std::uint32_t channel, const RankTree& tree) { write_tree(channel, tree); });
    }
    return frame_.close();
  }

 private:
  template <class Visit>
  void for_each_tree(Visit visit) const {
    for (std::uint32_t channel = 0; channel < world_.rings.size(); ++channel)
      for (std::uint32_t tree = 0; tree < tree_count(world_.nodes); ++tree)
        visit(channel, find_rank_tree(world_, channel, tree));
  }

  // Each channel has an equal part, each of its trees an equal part of that.
  Chunks chunks() const {
    const std::int64_t trees = std::ssize(world_.rings) * tree_count(world_.nodes);
    const std::int64_t part = divided_up(request_.bytes.count(), trees);
    const std::int64_t channels = divided_up<std::int64_t>(world_.channels(), trees);
    const std::int64_t handed_on = chunk_of(protocol_, request_) * channels;
    const std::int64_t count = divided_up(part, handed_on);
    const bool is_coarse = comes_by_lines_ || request_.fidelity == Fidelity::step;
    if (is_coarse && count > most_chunks)
      return {.count = most_chunks,
              .longer_count = part % most_chunks,
              .longer = as_messages(part / most_chunks + 1, divided_up(channels * count, most_chunks)),
              .shorter = as_messages(part / most_chunks, divided_up(channels * count, most_chunks))};
    return {.count = count,
            .longer_count = count - 1,
            .longer = as_messages(handed_on, channels),
            .shorter = as_messages(part - handed_on * (count - 1), channels)};
  }

  // With what a NIC could carry while it waits between so many messages.
  Bytes as_messages(std::int64_t data, std::int64_t messages) const {
    const Bytes wire = frame_.on_the_wire(data);
    return comes_by_lines_ ? wire : std::max(wire, world_.least_message * messages);
  }

  // Of a part of less than a chunk no longer than that takes.
  Duration find_time_in_hand() const {
    if (comes_by_lines_ || world_.hand_on_channel_bandwidth == Bandwidth{0} || !frame_.moves_anything())
      return Duration::zero();
    const std::int64_t of_channel =
        divided_up(request_.bytes.count(), std::max<std::int64_t>(request_.channels, 1));
    return time_to_move(Bytes{std::min(chunk_of(protocol_, request_), of_channel)},
                        world_.hand_on_channel_bandwidth);
  }

  void write_coupled(const Chunks& cut) {
    const auto between_nodes = static_cast<std::uint32_t>(deepest_path(world_.nodes, 0).size()) - 1;
    const std::uint32_t levels = world_.gpus_per_node - 1 + between_nodes;
    std::vector<OpId> arrived;
    for (std::uint32_t level = 0; level + 1 < levels; ++level)
      arrived = {walk(Direction::up, level, cut.at(0), arrived)};
    const OpId moved = request_.bytes > line_of_ll ? move_all(cut, arrived) : no_op;
    arrived = {walk(Direction::up, levels - 1, cut.at(0), arrived)};
    const std::uint32_t shared = world_.nodes == 2 ? 0 : 1;  // the level down whose links are shared
    for (std::uint32_t level = 0; level < levels; ++level) {
      arrived = {walk(Direction::down, level, level == 0 ? cut.all() : cut.at(0), arrived)};
      if (level == shared && moved != no_op)
        arrived.push_back(walk(Direction::down, level, Bytes{0}, std::span(&moved, 1)));
    }
  }

  // A single chunk never shares a link with itself: its bytes move beside its walk.
  OpId move_all(const Chunks& cut, std::span<const OpId> arrived) {
    const std::span<const OpId> after = cut.count > 1 ? arrived : std::span<const OpId>{};
    return frame_.move({.traffic = all_traffic(), .amount = cut.all(), .shape = {}}, after);
  }

  // The time that so many bytes take over one level, as a transfer of none.
  OpId walk(Direction direction, std::uint32_t level, Bytes bytes, std::span<const OpId> after) {
    const std::string key = direction == Direction::up ? "tree up " : "tree down ";
    const TrafficId traffic =
        writer_.traffic(key + std::to_string(level), [&] { return level_traffic(direction, level); });
    return frame_.move({.traffic = traffic,
                        .amount = Bytes{0},
                        .shape = {.bytes_per_hop = 0,
                                  .bytes_per_step = bytes.count(),
                                  .chain_steps = 1,
                                  .late = time_in_hand_}},
                       after);
  }

  // Each channel has a NIC of its own, and the slowest counts. In one node the channels take faster and
  // slower links in turn, and the first stands for all.
  Traffic level_traffic(Direction direction, std::uint32_t level) const {
    Traffic traffic{.flows = flows_by_level(direction)[level], .rounds = {}};
    std::vector<Flow>& round = traffic.rounds.emplace_back();
    std::copy_if(traffic.flows.begin(), traffic.flows.end(), std::back_inserter(round),
                 [&](const Flow& flow) { return world_.nodes > 1 || flow.channel == 0; });
    return traffic;
  }

  TrafficId all_traffic() {
    return writer_.traffic("tree", [&] {
      Traffic traffic{.flows = flows_of(Direction::up), .rounds = {}};
      const std::vector<Flow> down = flows_of(Direction::down);
      traffic.flows.insert(traffic.flows.end(), down.begin(), down.end());
      return traffic;
    });
  }

  std::vector<Flow> flows_of(Direction direction) const {
    std::vector<Flow> flows;
    for (const std::vector<Flow>& level : flows_by_level(direction))
      flows.insert(flows.end(), level.begin(), level.end());
    return flows;
  }

  // All trees are walked once a direction, however many levels are asked for.
  const std::vector<std::vector<Flow>>& flows_by_level(Direction direction) const {
    const bool goes_up = direction == Direction::up;
    std::vector<std::vector<Flow>>& levels = levels_[goes_up ? 0 : 1];
    if (levels.empty())
      for_each_tree([&](std::uint32_t channel, const RankTree& tree) {
        for (const RankEdge& edge : tree.edges) {
          const std::uint32_t level = goes_up ? edge.up_level : edge.down_level;
          levels.resize(std::max<std::size_t>(levels.size(), level + 1));
          levels[level].push_back({.source = goes_up ? edge.lower : edge.upper,
                                   .destination = goes_up ? edge.upper : edge.lower,
                                   .channel = channel});
        }
      });
    return levels;
  }

  void write_tree(std::uint32_t channel, const RankTree& tree) {
    std::vector<EdgeOps> ops;
    for (const RankEdge& edge : tree.edges)
      ops.push_back({.up_lane = writer_.new_channel_lane(edge.lower, channel),
                     .down_lane = writer_.new_channel_lane(edge.upper, channel),
                     .up_path = hop(edge.lower, edge.upper, channel),
                     .down_path = hop(edge.upper, edge.lower, channel)});
    const Chunks cut = chunks();
    for (std::int64_t chunk = 0; chunk < cut.count; ++chunk) {
      write_up(tree, cut.at(chunk), ops);
      write_down(tree, cut.at(chunk), ops);
    }
    for (std::size_t edge = 0; edge < ops.size(); ++edge)
      for (const Rank end : {tree.edges[edge].lower, tree.edges[edge].upper})
        for (const OpId message : {ops[edge].up, ops[edge].down})
          frame_.wait_for(writer_.representative_index(end), message);
  }

  PathId hop(Rank source, Rank destination, std::uint32_t channel) {
    return frame_.hop({.source = source, .destination = destination, .channel = channel}, {}, time_in_hand_);
  }

  void write_up(const RankTree& tree, Bytes chunk, std::vector<EdgeOps>& ops) {
    for (std::size_t edge = ops.size(); edge-- > 0;) {
      const bool is_first = ops[edge].up == no_op;
      const auto after = summed_at(tree.edges[edge].lower, tree.edges[edge].below, ops, is_first);
      ops[edge].up = writer_.transfer(ops[edge].up_lane, ops[edge].up_path, chunk, after);
    }
  }

  void write_down(const RankTree& tree, Bytes chunk, std::vector<EdgeOps>& ops) {
    const auto send_down = [&](std::size_t edge, std::span<const OpId> after) {
      ops[edge].down = writer_.transfer(ops[edge].down_lane, ops[edge].down_path, chunk, after);
    };
    const bool is_first = ops.front().down == no_op;
    const auto summed = summed_at(tree.root, tree.below_root, ops, is_first);
    for (const std::size_t edge : tree.below_root) send_down(edge, summed);
    for (std::size_t edge = 0; edge < ops.size(); ++edge)
      for (const std::size_t next : tree.edges[edge].below) send_down(next, std::span(&ops[edge].down, 1));
  }

  // What `rank` waits for before it hands a sum on; before its first it has launched.
  std::vector<OpId> summed_at(Rank rank, const std::vector<std::size_t>& below,
                              const std::vector<EdgeOps>& ops, bool is_first) const {
    std::vector<OpId> after;
    if (is_first)
      after.push_back(frame_.launched(writer_.representative_index(rank)));
    for (const std::size_t edge : below) after.push_back(ops[edge].up);
    return after;
  }

  PlanWriter& writer_;
  const CollectiveRequest& request_;
  const Communicator& world_;
  CollectiveFrame frame_;
  ProtocolFacts protocol_;
  bool comes_by_lines_;                                           // as those of LL and LL128 do
  Duration time_in_hand_;                                         // how long a rank has a chunk
  mutable std::array<std::vector<std::vector<Flow>>, 2> levels_;  // up, down
};

CollectiveOps write_tree(PlanWriter& writer, const CollectiveRequest& request) {
  return TreeWriter(writer, request).write();
}

bool supports_tree(CollectiveOp op) {
  return op == CollectiveOp::all_reduce;
}

const Registration<Collective> tree_registration{
    "tree",
    {write_tree, supports_tree, "up and down two binary trees between nodes, a chain in each", nullptr, false,
     line_of_ll}};

}  // namespace
}  // namespace lockstep
