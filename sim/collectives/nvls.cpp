// NVLS (NVLink SHARP): the NVSwitch adds what it reads and copies what it writes. Of n GPUs on one switch
// each looks after S / n: it reads its share, which the switch fetches from all n and adds, and for an
// AllReduce writes the sum back, which the switch copies to all n.
//
// Bytes on a GPU's link: reading sends S (a share to each reader) and receives S / n, writing sends S / n and
// receives S. So an AllReduce moves (n+1)/n S each way, a reduce-scatter or an all-gather S one way and S / n
// the other, of which the larger counts. All goes through the switch in one go, so it is one coupled transfer
// at both fidelities: every rank to its neighbour, which loads each link up and down as it is.
//
// NCCL goes in loops: each channel handles one chunk of every share at a time, so that a loop is `channels` chunks of
// a share, and chunks are smaller where there would be few loops. A chunk passes stages, one after another, while the
// next follows: for an AllReduce a GPU hands its data out, its owner reads and writes the sum, all copy it out; two for
// the others. Stages wait for each other's flags at every chunk.
//
// Time: launch + the bytes + (stages - 1) loops more of bytes + (loops + stages - 1) hops' latencies.
// Reference: Klenk et al. 2020, "An in-network architecture for accelerating shared-memory multiprocessor collectives";
// NVIDIA/nccl src/device/all_reduce.h (NVLS: scatter, reduce, gather), src/enqueue.cc (chunks), src/transport/nvls.cc.

#include <algorithm>

#include "sim/collectives/collective_frame.h"

namespace lockstep {
namespace {

constexpr std::int64_t largest_chunk = 128 * 1024;

// Half as large for less than 64 loops, and again for less than 8 and for less than 2 of what it is then.
std::int64_t chunk_of(std::int64_t share, std::int64_t channels) {
  std::int64_t chunk = largest_chunk;
  for (const std::int64_t fewest_loops : {64, 8, 2})
    if (share < fewest_loops * channels * chunk)
      chunk /= 2;
  return chunk;
}

struct SwitchWork {
  std::uint32_t shares_each_way;
  std::int64_t stages;
};

SwitchWork work_of(const CollectiveRequest& request) {
  const std::uint32_t ranks = request.world.ranks();
  return request.op == CollectiveOp::all_reduce ? SwitchWork{ranks + 1, 3} : SwitchWork{ranks, 2};
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
    const std::int64_t loop = std::min(share, request.channels * chunk_of(share, request.channels));
    const std::int64_t loops = divided_up(share, loop);
    const std::int64_t wire_loop = frame.on_the_wire(loop).count();
    const auto traffic = [&] { return switch_traffic(request.world, work.shares_each_way); };
    frame.move({.traffic = writer.traffic("nvls " + std::to_string(work.shares_each_way), traffic),
                .amount = frame.on_the_wire(share),
                .shape = {.bytes_per_hop = loops * wire_loop,
                          .bytes_per_step = wire_loop,
                          .chain_steps = loops + work.stages - 1}});
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

const Registration<Collective> nvls_registration{
    "nvls",
    {write_nvls, supports_nvls, "the NVSwitch adds on reading and multicasts on writing", nvls_lacks, true}};

}  // namespace
}  // namespace lockstep
