// CollNet (SHARP): the network's switches add. In each node the GPUs reduce-scatter among themselves, each
// NIC sends its part of S / C up to the switches and receives the sum of all nodes, and the GPUs all-gather
// it: a NIC carries S / C once each way, whatever the number of nodes, where a ring's carries almost twice
// that.
//
// Bytes: 2 (g-1)/g S on the links of a GPU of g, divided over the channels' rings inside the node; S / C on
// each of C NICs. What the switches do is not modelled: each node's NIC sends its part to the next node's, so
// that every NIC sends and receives it exactly once. Chunks stream through all of it at once, so the whole is
// one coupled transfer at both fidelities, late by one chunk's way: scatter in the node, up to the switch,
// down again, gather.
//
// Time: launch + the larger of S / C on a NIC and 2 (g-1)/g S on a GPU's links + four steps' latencies.
// Reference: Graham et al. 2016, "Scalable hierarchical aggregation protocol (SHArP)"; NVIDIA/nccl
// src/transport/coll_net.cc.

#include <algorithm>

#include "sim/collectives/collective_frame.h"

namespace lockstep {
namespace {

// NCCL's for this algorithm, on each channel (src/enqueue.cc).
constexpr std::int64_t chunk_of_channel = 128 * 1024;

// A flow of weight 1 carries one GPU's share of one channel's part: S / (C g).
class CollnetTraffic {
 public:
  explicit CollnetTraffic(const Communicator& world) : world_(world) {}

  Traffic make() const {
    Traffic traffic;
    for (std::uint32_t channel = 0; channel < world_.rings.size(); ++channel)
      for (std::uint32_t node = 0; node < world_.nodes; ++node) {
        for (std::uint32_t place = 0; place < world_.gpus_per_node && has_neighbours(); ++place)
          traffic.flows.push_back(in_node(channel, node, place));
        traffic.flows.push_back(through_switch(channel, node));
      }
    traffic.rounds = {way()};
    return traffic;
  }

  std::int64_t steps() const { return static_cast<std::int64_t>(way().size()); }

 private:
  bool has_neighbours() const { return world_.gpus_per_node > 1; }

  // Round the ring's stretch in the node, closed: g - 1 shares scattered and as many gathered.
  Flow in_node(std::uint32_t channel, std::uint32_t node, std::uint32_t place) const {
    const std::vector<std::uint32_t>& order = world_.rings[channel].local_order;
    return {.source = world_.rank_at(node, order[place]),
            .destination = world_.rank_at(node, order[(place + 1) % world_.gpus_per_node]),
            .channel = channel,
            .weight = 2 * (world_.gpus_per_node - 1)};
  }

  Flow through_switch(std::uint32_t channel, std::uint32_t node) const {
    const std::uint32_t beside_nic = world_.rings[channel].local_order.front();
    return {.source = world_.rank_at(node, beside_nic),
            .destination = world_.rank_at((node + 1) % world_.nodes, beside_nic),
            .channel = channel,
            .weight = world_.gpus_per_node};
  }

  std::vector<Flow> way() const {
    std::vector<Flow> way(2, through_switch(0, 0));
    if (has_neighbours()) {
      way.insert(way.begin(), in_node(0, 0, 0));
      way.push_back(in_node(0, 0, 0));
    }
    return way;
  }

  const Communicator& world_;
};

CollectiveOps write_collnet(PlanWriter& writer, const CollectiveRequest& request) {
  CollectiveFrame frame(writer, request, "collnet");
  if (frame.moves_anything()) {
    const CollnetTraffic traffic(request.world);
    const auto part =
        divided_up(request.bytes.count(), static_cast<std::int64_t>(request.world.rings.size()));
    const std::int64_t gpus = request.world.gpus_per_node;
    const Bytes chunk = frame.on_the_wire(divided_up(std::min(part, chunk_of_channel), gpus));
    frame.move({.traffic = writer.traffic("collnet", [&] { return traffic.make(); }),
                .amount = frame.on_the_wire(divided_up(part, gpus)),
                .shape = {.bytes_per_hop = chunk.count(),
                          .bytes_per_step = chunk.count(),
                          .chain_steps = traffic.steps()}});
  }
  return frame.close();
}

bool supports_collnet(CollectiveOp op) {
  return op == CollectiveOp::all_reduce;
}

std::string collnet_lacks(const Communicator& world) {
  if (world.nodes < 2)
    return "a second node: it is the network's switches that add";
  if (!world.network_reduces)
    return "switches that add (SHARP) and NCCL's plug-in for them; a fabric that has both says "
           "\"in_network_reduction\": true";
  return "";
}

const Registration<Collective> collnet_registration{
    "collnet", {write_collnet, supports_collnet, "the network's switches add (SHARP)", collnet_lacks, true}};

}  // namespace
}  // namespace lockstep
