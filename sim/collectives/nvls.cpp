// NVLS (NVLink SHARP): the NVSwitch adds what it reads and copies what it writes. Of n GPUs on one switch
// each looks after S / n: it reads its share, which the switch fetches from all n and adds, and for an
// AllReduce writes the sum back, which the switch copies to all n.
//
// Bytes on a GPU's link: reading sends S (a share to each reader) and receives S / n, writing sends S / n and
// receives S. So an AllReduce moves (n+1)/n S each way, a reduce-scatter or an all-gather S one way and S / n
// the other, of which the larger counts. All goes through the switch in one go, so it is one coupled transfer
// at both fidelities: every rank to its neighbour, which loads each link up and down as it is.
//
// Time: launch + (n+1)/n S/B + 2 L + one more chunk on the link for an AllReduce; launch + S/B + L for the
// others, with L the latency of a hop. Reference: Klenk et al. 2020, "An in-network architecture for
// accelerating shared-memory multiprocessor collectives"; NVIDIA/nccl src/transport/nvls.cc.

#include <algorithm>

#include "sim/collectives/collective_frame.h"

namespace lockstep {
namespace {

// Of each GPU's share, NCCL hands on no more at a time while sizes are small (src/enqueue.cc).
constexpr std::int64_t chunk_of_share = 64 * 1024;

struct SwitchWork {
  std::uint32_t shares_each_way;
  std::int64_t steps;
};

SwitchWork work_of(const CollectiveRequest& request) {
  const std::uint32_t ranks = request.world.ranks();
  return request.op == CollectiveOp::all_reduce ? SwitchWork{ranks + 1, 2} : SwitchWork{ranks, 1};
}

Traffic switch_traffic(const Communicator& world, std::uint32_t shares_each_way) {
  Traffic traffic;
  for (std::uint32_t rank = 0; rank < world.ranks(); ++rank)
    traffic.flows.push_back(
        {.source = Rank{rank}, .destination = world.next(0, Rank{rank}), .weight = shares_each_way});
  traffic.rounds = {{traffic.flows.front()}};
  return traffic;
}

CollectiveOps write_nvls(PlanWriter& writer, const CollectiveRequest& request) {
  CollectiveFrame frame(writer, request, "nvls");
  if (frame.moves_anything()) {
    const SwitchWork work = work_of(request);
    const std::int64_t share = divided_up(request.bytes.count(), request.world.ranks());
    const std::int64_t chunk = frame.on_the_wire(std::min(share, chunk_of_share)).count();
    const auto traffic = [&] { return switch_traffic(request.world, work.shares_each_way); };
    frame.move({.traffic = writer.traffic("nvls " + std::to_string(work.shares_each_way), traffic),
                .amount = frame.on_the_wire(share),
                .shape = {.bytes_per_hop = chunk, .bytes_per_step = chunk, .chain_steps = work.steps}});
  }
  return frame.close();
}

bool supports_nvls(CollectiveOp op) {
  return op == CollectiveOp::all_reduce || op == CollectiveOp::all_gather ||
         op == CollectiveOp::reduce_scatter;
}

std::string nvls_lacks(const Communicator& world) {
  if (!world.switch_multicasts)
    return "an NVSwitch that adds and multicasts (NVLink SHARP)";
  if (world.nodes > 1)
    return "a cluster of one node; \"nvls_tree\" spans several";
  return world.ranks() < 2 ? "a second GPU" : "";
}

const Registration<Collective> registration{
    "nvls",
    {write_nvls, supports_nvls, "the NVSwitch adds on reading and multicasts on writing", nvls_lacks, true}};

}  // namespace
}  // namespace lockstep
