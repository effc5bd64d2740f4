// Hierarchical AllReduce: reduce inside the nodes, then between them, then spread inside again.
//
// The GPUs of a node reduce-scatter round its rings, so that each ends with 1/g of S; the GPUs with the same
// local index on all nodes AllReduce that part round a ring of their own, by the NIC beside them; the GPUs of
// a node all-gather. In the node S is split over the rings; chunks are padded to equal size. On one node the
// middle falls away, with one GPU a node the rest does.
//
// Time, over switches: 2 (g-1) steps of S/g in the node and 2 (N-1) steps of S/(gN) on the NIC,
// 2 (g-1)/g S/B + 2 (N-1)/N S/(g B_nic) + 2 (g-1) l + 2 (N-1) L.
// Reference: Cho et al. 2019, "BlueConnect"; Jia et al. 2018, "Highly Scalable Deep Learning Training System
//            with Mixed-Precision".

#include <map>

#include "sim/collectives/pairwise.h"

namespace lockstep {
namespace {

// Cycles of ranks that turn side by side: in a step every flow carries a chunk one rank on.
struct Turning {
  std::string name;
  Traffic (*traffic)(const Communicator& world);
  Bytes chunk;  // on the wire
  std::int64_t steps = 0;
};

Traffic traffic_in_nodes(const Communicator& world) {
  Traffic traffic;
  for (std::uint32_t ring = 0; ring < world.rings.size(); ++ring) {
    std::vector<Flow>& first_node = traffic.rounds.emplace_back();
    const std::vector<std::uint32_t>& order = world.rings[ring].local_order;
    for (std::uint32_t node = 0; node < world.nodes; ++node)
      for (std::size_t place = 0; place < order.size(); ++place) {
        traffic.flows.push_back({.source = world.rank_at(node, order[place]),
                                 .destination = world.rank_at(node, order[(place + 1) % order.size()]),
                                 .channel = ring});
        if (node == 0)
          first_node.push_back(traffic.flows.back());
      }
  }
  return traffic;
}

// Rings of the GPUs of one local index, one for each channel beside them. Nodes are alike: a hop is a round.
Traffic traffic_between_nodes(const Communicator& world) {
  Traffic traffic;
  for (std::uint32_t local = 0; local < world.gpus_per_node; ++local)
    for (const std::uint32_t channel : channels_beside(world, local))
      for (std::uint32_t node = 0; node < world.nodes; ++node) {
        traffic.flows.push_back({.source = world.rank_at(node, local),
                                 .destination = world.rank_at((node + 1) % world.nodes, local),
                                 .channel = channel});
        if (node == 0)
          traffic.rounds.push_back({traffic.flows.back()});
      }
  return traffic;
}

class HierarchicalWriter {
 public:
  HierarchicalWriter(PlanWriter& writer, const CollectiveRequest& request)
      : writer_(writer), request_(request), world_(request.world), frame_(writer, request, "hierarchical") {}

  CollectiveOps write() {
    if (frame_.moves_anything()) {
      done_ = all_launched(frame_);
      for (const Turning& turning : {in_nodes(), between_nodes(), in_nodes()})
        if (turning.steps > 0)
          write(turning);
      if (request_.fidelity == Fidelity::step)
        for (std::size_t i = 0; i < done_.size(); ++i) frame_.wait_for(i, done_[i]);
    }
    return frame_.close();
  }

 private:
  // Every ring's part of S, in a chunk for each GPU.
  Turning in_nodes() const {
    const std::int64_t per_ring = divided_up(request_.bytes.count(), std::ssize(world_.rings));
    return {.name = "hierarchical in nodes",
            .traffic = traffic_in_nodes,
            .chunk = frame_.on_the_wire(divided_up(per_ring, world_.gpus_per_node)),
            .steps = std::int64_t{world_.gpus_per_node} - 1};
  }

  // Every GPU's part of S, in a chunk for each node, once round to reduce and once to spread.
  Turning between_nodes() const {
    return {.name = "hierarchical between nodes",
            .traffic = traffic_between_nodes,
            .chunk = frame_.on_the_wire(bytes_per_block(request_, world_.ranks())),
            .steps = 2 * (std::int64_t{world_.nodes} - 1)};
  }

  void write(const Turning& turning) {
    if (request_.fidelity == Fidelity::flow)
      write_coupled(turning);
    else
      write_steps(turning);
  }

  void write_coupled(const Turning& turning) {
    const Bytes moved = turning.chunk * turning.steps;
    done_ = {frame_.move({.traffic = writer_.traffic(turning.name, [&] { return turning.traffic(world_); }),
                          .amount = moved,
                          .shape = {.bytes_per_hop = moved.count(),
                                    .bytes_per_step = turning.chunk.count(),
                                    .chain_steps = turning.steps}},
                         done_)};
  }

  // `sent` and `before` hold the transfer of each flow in this step and the last one. A step waits for the
  // chunk that the flow into its sender brought in the step before.
  void write_steps(const Turning& turning) {
    const std::vector<Flow> flows = turning.traffic(world_).flows;
    const std::vector<std::size_t> feeding = find_feeding(flows);
    std::vector<LaneId> lanes;
    for (const Flow& flow : flows) lanes.push_back(writer_.new_channel_lane(flow.source, flow.channel));
    std::vector<OpId> before(flows.size());
    std::vector<OpId> sent(flows.size());
    for (std::int64_t step = 0; step < turning.steps; ++step) {
      for (std::size_t i = 0; i < flows.size(); ++i) {
        const OpId arrived = step == 0 ? done_at(flows[i].source) : before[feeding[i]];
        const PathId path = frame_.hop(flows[i]);
        sent[i] = writer_.transfer(lanes[i], path, turning.chunk, std::span(&arrived, 1));
      }
      std::swap(before, sent);
    }
    join_ends(flows, before);
  }

  // By flow: the one that ends where it begins, on the same channel.
  static std::vector<std::size_t> find_feeding(const std::vector<Flow>& flows) {
    std::map<std::pair<Rank, std::uint32_t>, std::size_t> arriving;
    for (std::size_t i = 0; i < flows.size(); ++i) arriving[{flows[i].destination, flows[i].channel}] = i;
    std::vector<std::size_t> feeding;
    for (const Flow& flow : flows) feeding.push_back(arriving.at({flow.source, flow.channel}));
    return feeding;
  }

  // A rank has done when its last chunks have gone and come.
  void join_ends(const std::vector<Flow>& flows, const std::vector<OpId>& last) {
    std::vector<std::vector<OpId>> ends(done_.size());
    for (std::size_t i = 0; i < flows.size(); ++i) {
      ends[writer_.representative_index(flows[i].source)].push_back(last[i]);
      ends[writer_.representative_index(flows[i].destination)].push_back(last[i]);
    }
    for (std::size_t i = 0; i < ends.size(); ++i)
      done_[i] = writer_.join(writer_.new_channel_lane(frame_.ranks()[i]), ends[i]);
  }

  OpId done_at(Rank rank) const { return done_[writer_.representative_index(rank)]; }

  PlanWriter& writer_;
  const CollectiveRequest& request_;
  const Communicator& world_;
  CollectiveFrame frame_;
  std::vector<OpId> done_;  // by representative, or one for all: the end of its last turning
};

CollectiveOps write_hierarchical(PlanWriter& writer, const CollectiveRequest& request) {
  return HierarchicalWriter(writer, request).write();
}

bool supports_hierarchical(CollectiveOp op) {
  return op == CollectiveOp::all_reduce;
}

const Registration<Collective> hierarchical_registration{
    "hierarchical",
    {write_hierarchical, supports_hierarchical,
     "reduce-scatter in the node, rings between GPUs of one index on all nodes, all-gather in the node"}};

}  // namespace
}  // namespace lockstep
