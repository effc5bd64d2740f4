// NVLS tree: the NVSwitch adds inside each node (nvls.cpp), the double binary tree between the nodes
// (double_binary_tree.h). On channel c of C the GPU beside that channel's NIC reads the node's sum of S / C
// off the switch, sends it up and down both trees, half on each, and writes the result back for the switch to
// copy.
//
// Bytes: (g+1)/g S on a GPU's link each way with g GPUs a node, as for NVLS; on a NIC no more than 2 S / C
// each way, as for the tree. Chunks stream through switch, NIC and trees at once, so the whole is one coupled
// transfer at both fidelities, late by one loop's way: read, up the deepest path, down again, write. A loop is a chunk of
// every GPU's share on every channel, as for NVLS.
//
// What the algorithm cannot use of a link (its efficiency) is the switch's: reading sums and writing copies is
// slower than the wire there, while a NIC only sends. So flows inside a node weigh more by that much.
//
// Time: launch + S on the fullest link + that way's latencies and half loops but one.
// Reference: NVIDIA/nccl src/device/all_reduce.h, NVLS_TREE; Sanders, Speck and Traff 2009.

#include <algorithm>

#include "sim/collectives/collective_frame.h"
#include "sim/collectives/double_binary_tree.h"

namespace lockstep {
namespace {

// src/enqueue.cc: smaller for less than four loops, and again for less than one; `shares`: of all channels and GPUs.
std::int64_t chunk_of(std::int64_t bytes, std::int64_t shares, std::uint32_t nodes) {
  constexpr std::int64_t usual = 64 * 1024;
  constexpr std::uint32_t many_nodes = 4;
  const bool is_large = nodes < many_nodes && bytes >= 4 * shares * 2 * usual;
  return is_large ? 2 * usual : (bytes < shares * usual ? usual / 2 : usual);
}

// A share is what one GPU has of what one tree of one channel carries: S / (2 C g). A flow of weight 1 carries
// a share, or one per cent of it where the switch does not give all of a link.
class NvlsTreeTraffic {
 public:
  NvlsTreeTraffic(const Communicator& world, Ratio efficiency) : world_(world), efficiency_(efficiency) {}

  // The weight of a share inside a node.
  std::uint32_t parts() const { return efficiency_ == Ratio::one() ? 1 : 100; }

  Traffic make() const {
    Traffic traffic;
    for (std::uint32_t rank = 0; rank < world_.ranks(); ++rank) traffic.flows.push_back(in_node(Rank{rank}));
    for (std::uint32_t channel = 0; channel < world_.rings.size(); ++channel)
      for (std::uint32_t tree = 0; tree < 2; ++tree)
        for (std::uint32_t node = 0; node < world_.nodes; ++node)
          add_tree_flows(channel, tree, node, traffic);
    traffic.rounds = {deepest_way()};
    return traffic;
  }

  // Read from the switch, up, down, write to the switch.
  std::int64_t steps() const { return static_cast<std::int64_t>(deepest_way().size()); }

 private:
  // (g+1)/g S each way, over the switch to any other GPU of the node.
  Flow in_node(Rank rank) const {
    const std::uint32_t neighbour = (world_.local_of(rank) + 1) % world_.gpus_per_node;
    const auto channels = static_cast<std::uint32_t>(world_.rings.size());
    return {.source = rank,
            .destination = world_.rank_at(world_.node_of(rank), neighbour),
            .weight = (world_.gpus_per_node + 1) * 2 * channels * parts()};
  }

  Flow between_nodes(std::uint32_t channel, std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t beside_nic = world_.rings[channel].local_order.front();
    return {.source = world_.rank_at(from, beside_nic),
            .destination = world_.rank_at(to, beside_nic),
            .channel = channel,
            .weight = shares_between_nodes()};
  }

  void add_tree_flows(std::uint32_t channel, std::uint32_t tree, std::uint32_t node, Traffic& traffic) const {
    for (const std::uint32_t child : tree_links(world_.nodes, node, tree).children) {
      traffic.flows.push_back(between_nodes(channel, child, node));
      traffic.flows.push_back(between_nodes(channel, node, child));
    }
  }

  std::vector<Flow> deepest_way() const {
    const std::vector<std::uint32_t> path = deepest_path(world_.nodes, 0);
    std::vector<Flow> way{in_node(world_.rank_at(path.front(), 0))};
    for (std::size_t level = 0; level + 1 < path.size(); ++level)
      way.push_back(between_nodes(0, path[level], path[level + 1]));
    for (std::size_t level = path.size() - 1; level > 0; --level)
      way.push_back(between_nodes(0, path[level], path[level - 1]));
    way.push_back(way.front());
    return way;
  }

  // What all GPUs of a node have, without what is only the switch's.
  std::uint32_t shares_between_nodes() const {
    const std::int64_t parts_of_all = std::int64_t{world_.gpus_per_node} * parts();
    return static_cast<std::uint32_t>(
        std::max<std::int64_t>(scaled_to_nearest(parts_of_all, efficiency_), 1));
  }

  const Communicator& world_;
  Ratio efficiency_;
};

CollectiveOps write_nvls_tree(PlanWriter& writer, const CollectiveRequest& request) {
  CollectiveFrame frame(writer, request, "nvls_tree");
  if (frame.moves_anything()) {
    const NvlsTreeTraffic traffic(request.world, frame.efficiency());
    const auto per_tree =
        divided_up(request.bytes.count(), 2 * static_cast<std::int64_t>(request.world.rings.size()));
    const std::int64_t shares = std::int64_t{request.channels} * request.world.gpus_per_node;
    const std::int64_t loop = shares * chunk_of(request.bytes.count(), shares, request.world.nodes);
    // A loop on its way up meets none on its way down yet: each hop has half of what it carries in the end.
    const auto loop_of_tree = divided_up(std::min(request.bytes.count(), loop),
                                         2 * 2 * static_cast<std::int64_t>(request.world.rings.size()));
    const std::int64_t parts = std::int64_t{request.world.gpus_per_node} * traffic.parts();
    const Bytes chunk = frame.on_the_wire(divided_up(loop_of_tree, parts));
    frame.move({.traffic = writer.traffic("nvls_tree", [&] { return traffic.make(); }),
                .amount = frame.on_the_wire(divided_up(per_tree, parts)),
                .shape = {.bytes_per_hop = chunk.count(),
                          .bytes_per_step = chunk.count(),
                          .chain_steps = traffic.steps()}});
  }
  return frame.close();
}

bool supports_nvls_tree(CollectiveOp op) {
  return op == CollectiveOp::all_reduce;
}

std::string nvls_tree_lacks(const Communicator& world) {
  if (!world.switch_multicasts)
    return "an NVSwitch that adds and multicasts (NVLink SHARP)";
  if (world.gpus_per_node < 2)
    return "a second GPU in each node";
  return world.nodes < 2 ? "a second node; \"nvls\" is for one" : "";
}

const Registration<Collective> nvls_tree_registration{
    "nvls_tree",
    {write_nvls_tree, supports_nvls_tree, "NVLS in each node, two binary trees between nodes",
     nvls_tree_lacks, false}};

}  // namespace
}  // namespace lockstep
