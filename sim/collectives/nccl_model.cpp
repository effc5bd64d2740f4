#include "sim/collectives/nccl_model.h"

#include <algorithm>
#include <bit>

namespace lockstep {
namespace {

std::size_t index_of(NcclProtocol protocol) {
  return static_cast<std::size_t>(protocol);
}

// NCCL's rounded-down logarithm of the nodes.
std::int64_t floor_log2(std::int64_t value) {
  return std::bit_width(static_cast<std::uint64_t>(value)) - 1;
}

GpuGeneration generation_of(std::int64_t compute_capability, std::int64_t version_code) {
  // Older releases know only the very chips they were written for.
  if (version_code < 21'700 && compute_capability != 80 && compute_capability != 90)
    return GpuGeneration::volta;
  if (compute_capability >= 100)
    return GpuGeneration::blackwell;
  if (compute_capability >= 90)
    return version_code < 21'500 ? GpuGeneration::volta : GpuGeneration::hopper;
  return compute_capability >= 80 ? GpuGeneration::ampere : GpuGeneration::volta;
}

// Tables by 1, 2, and 3 or more nodes.
std::size_t row_of(const NcclCase& asked) {
  return static_cast<std::size_t>(std::min<std::int64_t>(asked.nodes, 3) - 1);
}

// All channels together, before an algorithm takes its part.
std::int64_t bus_bandwidth(const NcclCase& asked) {
  const Bandwidth planned = asked.nodes > 1 ? asked.planning.between_nodes : asked.planning.in_node;
  const std::int64_t found = planned.count() / million;
  const bool is_capped = asked.version_code < 21'800 && asked.generation == GpuGeneration::ampere;
  return is_capped ? std::min<std::int64_t>(found, 235'000) : found;
}

// Across nodes the LL limit goes by the host's processor, inside one by the GPU.
std::int64_t most_ll(const NcclCase& asked) {
  const GpuGeneration of_row = asked.nodes == 1              ? asked.generation
                               : asked.planning.has_amd_host ? GpuGeneration::ampere
                                                             : GpuGeneration::volta;
  return most_ll_bandwidth(of_row, asked.version_code)[row_of(asked)];
}

const ByProtocol& in_node(const NcclCase& asked, const LinkLatencies& latencies) {
  return asked.planning.has_nvlink ? latencies.nvlink : latencies.pcie;
}

// Of a step that stays inside a node.
std::int64_t in_node_latency(const NcclCase& asked, const LinkLatencies& latencies, NcclProtocol protocol) {
  std::int64_t latency = in_node(asked, latencies)[index_of(protocol)];
  if (asked.nodes == 1)
    return latency;
  if (asked.constants.ll_is_slower_across_nodes && protocol == NcclProtocol::ll)
    latency = latency * 18 / 10;
  if (!asked.constants.counts_network_overhead)
    return latency;
  const std::int64_t overhead = asked.planning.has_amd_host ? 2'000 : 1'000;
  return std::max(latency, protocol == NcclProtocol::simple ? 3 * overhead : overhead);
}

// A ring moves its bytes in so many steps, and so many of these between nodes.
std::int64_t ring_steps(const NcclCase& asked) {
  if (asked.is_rooted())
    return asked.ranks;
  return asked.is_all_reduce() ? 2 * (asked.ranks - 1) : asked.ranks - 1;
}

std::int64_t ring_network_steps(const NcclCase& asked) {
  if (asked.nodes == 1)
    return 0;
  if (!asked.is_all_reduce())
    return asked.nodes - 1;
  return asked.constants.one_node_more_in_rings ? 2 * asked.nodes : 2 * (asked.nodes - 1);
}

std::int64_t ring_network_latency(const NcclCase& asked, NcclProtocol protocol) {
  const bool is_alone = asked.per_node == 1 && asked.version_code >= 22'300;
  return (is_alone ? asked.constants.tree : asked.constants.ring).network[index_of(protocol)];
}

// Before 2.21 what only gathers or scatters inside a node got a third of the bandwidth, all else a quarter.
Ratio ring_ll(const NcclCase& asked) {
  const bool is_old = asked.constants.ring_ll < Ratio::percent(50);
  return is_old && asked.nodes == 1 && !asked.is_all_reduce() && asked.op != CollectiveOp::reduce
             ? Ratio::parts_per_million(333'333)
             : asked.constants.ring_ll;
}

std::int64_t ring_bandwidth(const NcclCase& asked, NcclProtocol protocol) {
  const std::int64_t bus = bus_bandwidth(asked);
  if (protocol == NcclProtocol::simple)
    return bus;
  if (protocol == NcclProtocol::ll)
    return std::min(most_ll(asked), scaled_down(bus, ring_ll(asked)));
  const bool lacks_peers = asked.per_node == 1 && asked.constants.ring_ll128_is_less_without_peers;
  return std::min(scaled_down(bus, Ratio::percent(lacks_peers ? 70 : 92)),
                  asked.channels * most_ring_ll128_per_channel(asked.generation)[row_of(asked)]);
}

// Where rings between nodes take longer than their steps say.
bool has_plateau(const NcclCase& asked, NcclProtocol protocol) {
  if (protocol != NcclProtocol::simple || !asked.is_all_reduce() || asked.nodes == 1)
    return false;
  return asked.constants.plateau_counts_bytes_per_rank ? asked.bytes >= 4096 * asked.ranks
                                                       : asked.bytes / (asked.channels * asked.ranks) >= 64;
}

Ratio plateau(const NcclCase& asked) {
  return asked.generation == GpuGeneration::volta ? Ratio::percent(190) : asked.constants.simple_ring_plateau;
}

std::int64_t rooted_ring_latency(const NcclCase& asked, NcclProtocol protocol) {
  const NcclConstants& constants = asked.constants;
  const LinkLatencies& latencies = protocol == NcclProtocol::simple ? constants.tree : constants.ring;
  return (asked.nodes > 1 ? latencies.network : in_node(asked, latencies))[index_of(protocol)];
}

// On two nodes a tree crosses each NIC half as often as a ring, and the search looks for links inside the
// node that keep up with that. Tables of 2.18 and 2.21 show rings at every large size, those of 2.23 trees.
std::int64_t tree_bus_bandwidth(const NcclCase& asked) {
  if (asked.nodes != 2 || asked.version_code < 22'300)
    return bus_bandwidth(asked);
  return std::min(2 * bus_bandwidth(asked), asked.planning.in_node.count() / million);
}

std::int64_t tree_bandwidth(const NcclCase& asked, NcclProtocol protocol) {
  const std::int64_t all =
      std::min(scaled_down(tree_bus_bandwidth(asked), Ratio::percent(92)),
               asked.channels * most_tree_per_channel(asked.generation, asked.version_code)[row_of(asked)]);
  if (protocol == NcclProtocol::ll)
    return std::min(all * 10 / 38, most_ll(asked));
  if (protocol == NcclProtocol::ll128)
    return std::min(asked.nodes == 1 ? all * 7 / 9 : all * 120 / 128,
                    asked.channels * most_tree_ll128_per_channel(asked.generation)[row_of(asked)]);
  return all;
}

// Bandwidth of the switch's multicast over all heads, one for each GPU of the node.
std::int64_t multicast_bandwidth(const NcclCase& asked) {
  const std::int64_t all = asked.planning.multicast_per_head.count() / million * asked.per_node;
  if (asked.constants.nvls.ratio > Ratio{})
    return scaled_down(all, asked.constants.nvls.ratio);
  return scaled_down(all, nvls_efficiency(asked.generation)) * (asked.per_node - 1) / asked.per_node * 2;
}

// Of the algorithm's bytes: the ring's n / steps since 2.28, a fixed ratio before.
std::int64_t multicast_algorithm_bandwidth(const NcclCase& asked, std::int64_t bus) {
  return asked.constants.nvls.ratio > Ratio{} ? bus : bus * asked.ranks / (2 * (asked.ranks - 1));
}

}  // namespace

NcclCase::NcclCase(const TunerRequest& request)
    : op(request.op),
      bytes(request.bytes.count()),
      version_code(request.version_code),
      constants(nccl_constants(request.version_code)),
      planning(request.world.planning),
      generation(generation_of(planning.compute_capability, request.version_code)),
      ranks(request.world.ranks()),
      nodes(request.world.nodes),
      per_node(request.world.gpus_per_node),
      channels(std::max<std::int64_t>(request.world.channels(), 1)),
      can_multicast(request.world.switch_multicasts && constants.nvls.is_known) {}

NcclEstimate ring_estimate(const NcclCase& asked, NcclProtocol protocol) {
  const std::int64_t steps = ring_steps(asked);
  NcclEstimate estimate{.bandwidth = ring_bandwidth(asked, protocol) * asked.ranks / steps,
                        .latency = asked.constants.ring_base[index_of(protocol)]};
  if (asked.is_rooted()) {
    estimate.latency += rooted_ring_latency(asked, protocol);
    return estimate;
  }
  const std::int64_t across = ring_network_steps(asked);
  estimate.latency += (steps - across) * in_node_latency(asked, asked.constants.ring, protocol) +
                      across * ring_network_latency(asked, protocol);
  if (has_plateau(asked, protocol))
    estimate.latency = scaled_down(estimate.latency, plateau(asked));
  return estimate;
}

NcclEstimate tree_estimate(const NcclCase& asked, NcclProtocol protocol) {
  if (!asked.is_all_reduce())
    return {};
  const LinkLatencies& latencies = asked.constants.tree;
  return {
      .bandwidth = scaled_down(tree_bandwidth(asked, protocol) / 2, tree_correction(protocol, asked.bytes)),
      .latency = asked.constants.tree_base[index_of(protocol)] +
                 2 * ((asked.per_node - 1) * in_node_latency(asked, latencies, protocol) +
                      floor_log2(asked.nodes) * latencies.network[index_of(protocol)])};
}

NcclEstimate nvls_estimate(const NcclCase& asked) {
  if (!asked.can_multicast || asked.nodes > 1 || asked.per_node < 2 || !asked.is_all_reduce())
    return {};
  return {.bandwidth = multicast_algorithm_bandwidth(asked, multicast_bandwidth(asked)),
          .latency = asked.constants.nvls.in_node};
}

NcclEstimate nvls_tree_estimate(const NcclCase& asked) {
  if (!asked.can_multicast || asked.nodes == 1 || !asked.is_all_reduce())
    return {};
  const std::int64_t across = asked.planning.between_nodes.count() / million;
  std::int64_t bus = std::min(multicast_bandwidth(asked), asked.nodes == 2 ? 2 * across : across);
  if (asked.version_code >= 22'800)
    bus = std::min(bus, asked.channels * most_nvls_tree_per_channel(asked.generation)[row_of(asked)]);
  return {.bandwidth = multicast_algorithm_bandwidth(asked, bus),
          .latency =
              asked.constants.nvls.in_node + 2 * floor_log2(asked.nodes) * asked.constants.nvls.tree_network};
}

NcclEstimate pat_estimate(const NcclCase& asked) {
  const bool is_half = asked.op == CollectiveOp::all_gather || asked.op == CollectiveOp::reduce_scatter;
  if (!asked.constants.has_pat || !is_half || asked.per_node > 1 || asked.nodes == 1)
    return {};
  return {.bandwidth = scaled_down(bus_bandwidth(asked), Ratio::percent(75)),
          .latency = 8'000 + floor_log2(asked.nodes) * 14'000 * 10 / 35 + 2'800 * asked.ranks};
}

}  // namespace lockstep
