// PAT, for nodes of one GPU: an all-gather in ceil(log2 n) rounds and a reduce-scatter in its reverse order.
//
// Before round k a rank holds the blocks of the 2^k ranks up to itself; it sends them, or the n - 2^k that
// are still missing in the last round, to the rank 2^k after it. Backwards that is a reduce-scatter: a rank
// gives the rank 2^k before it the sums that this rank collects, the largest k first. Each message is split
// over all channels; blocks of S / n are padded to equal size. NCCL walks the same binomial trees from their
// far end so that its buffers stay small; bytes and partners are these, and so are the rounds until messages
// outgrow the buffers, when bytes rule the time.
//
// Time: (n-1)/n S/B + ceil(log2 n) L, B and L of the NIC.
// Reference: Bruck et al. 1997, "Efficient algorithms for all-to-all communications"; Jeaugey 2025, "PAT: a
//            new algorithm for all-gather and reduce-scatter operations at scale".

#include <algorithm>
#include <bit>

#include "sim/collectives/pairwise.h"

namespace lockstep {
namespace {

std::size_t count_rounds(const Communicator& world) {
  return static_cast<std::size_t>(std::bit_width(world.ranks() - 1));
}

Traffic pat_traffic(const CollectiveRequest& request, std::size_t round) {
  const std::uint32_t ranks = request.world.ranks();
  const bool gathers = request.op == CollectiveOp::all_gather;
  const std::size_t doublings = gathers ? round : count_rounds(request.world) - 1 - round;
  const std::uint32_t distance = 1u << doublings;
  MessageList list(request.world);
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    list.add(Rank{rank}, Rank{(gathers ? rank + distance : rank + ranks - distance) % ranks},
             std::min(distance, ranks - distance));
  const std::vector<Flow> flows = std::move(list).flows();
  return {.flows = flows, .rounds = {flows}};
}

std::vector<std::string> round_names(const CollectiveRequest& request) {
  std::vector<std::string> names;
  for (std::size_t round = 0; round < count_rounds(request.world); ++round)
    names.push_back("pat " + std::string(collective_op_name(request.op)) + " " + std::to_string(round));
  return names;
}

CollectiveOps write_pat(PlanWriter& writer, const CollectiveRequest& request) {
  CollectiveFrame frame(writer, request, "pat");
  if (frame.moves_anything())
    write_exchange(writer, request, frame,
                   {.rounds = round_names(request),
                    .block = frame.on_the_wire(bytes_per_block(request, request.world.ranks())),
                    .traffic = pat_traffic,
                    .ready = all_launched(frame)});
  return frame.close();
}

bool supports_pat(CollectiveOp op) {
  return op == CollectiveOp::all_gather || op == CollectiveOp::reduce_scatter;
}

std::string pat_lacks(const Communicator& world) {
  return world.gpus_per_node > 1 ? "nodes of one GPU each" : "";
}

const Registration<Collective> pat_registration{
    "pat",
    {write_pat, supports_pat, "parallel aggregated trees, log2 n rounds, on nodes of one GPU", pat_lacks}};

}  // namespace
}  // namespace lockstep
