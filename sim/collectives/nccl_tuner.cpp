#include "sim/collectives/nccl_tuner.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "sim/collectives/nccl_constants.h"

namespace lockstep {
namespace {

constexpr std::array<NcclProtocol, 3> all_protocols{NcclProtocol::ll, NcclProtocol::ll128,
                                                    NcclProtocol::simple};
constexpr std::array<const char*, 3> protocol_names{"ll", "ll128", "simple"};

std::size_t index_of(NcclProtocol protocol) {
  return static_cast<std::size_t>(protocol);
}

std::int64_t parts(std::int64_t amount, std::int64_t ppm) {
  return amount * ppm / million;
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

// What the model says of one algorithm and protocol: MB/s of the algorithm's own bytes, nanoseconds.
struct Estimate {
  std::int64_t bandwidth = 0;  // zero: not allowed
  std::int64_t latency = 0;
};

class Tuner {
 public:
  explicit Tuner(const TunerRequest& request)
      : request_(request),
        world_(request.world),
        planning_(request.world.planning),
        constants_(nccl_constants(request.version_code)),
        generation_(generation_of(planning_.compute_capability, request.version_code)),
        ranks_(world_.ranks()),
        nodes_(world_.nodes),
        per_node_(world_.gpus_per_node),
        channels_(std::max<std::int64_t>(world_.channels(), 1)) {}

  std::vector<TunerCandidate> weigh() const {
    std::vector<TunerCandidate> candidates;
    for (const NcclProtocol protocol : all_protocols) {
      if (!allows(protocol))
        continue;
      add("ring", protocol, ring(protocol), candidates);
      add("tree", protocol, tree(protocol), candidates);
    }
    if (allows(NcclProtocol::simple)) {
      add("nvls", NcclProtocol::simple, nvls(), candidates);
      add("nvls_tree", NcclProtocol::simple, nvls_tree(), candidates);
      add("pat", NcclProtocol::simple, pat(), candidates);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.expected < b.expected; });
    return candidates;
  }

 private:
  bool is_all_reduce() const { return request_.op == CollectiveOp::all_reduce; }
  bool is_rooted() const {
    return request_.op == CollectiveOp::broadcast || request_.op == CollectiveOp::reduce;
  }
  bool is_half() const {
    return request_.op == CollectiveOp::all_gather || request_.op == CollectiveOp::reduce_scatter;
  }

  // Protocols that nothing is known of are not chosen.
  bool is_known(NcclProtocol protocol) const {
    return world_.protocols.empty() ||
           std::any_of(world_.protocols.begin(), world_.protocols.end(), [&](const ProtocolFacts& facts) {
             return facts.name == protocol_names[index_of(protocol)];
           });
  }

  bool allows(NcclProtocol protocol) const {
    if (!is_known(protocol))
      return false;
    if (request_.protocol != "auto")
      return request_.protocol == protocol_names[index_of(protocol)];
    return protocol != NcclProtocol::ll128 || allows_ll128();
  }

  // LL128 relies on 128 bytes arriving whole: over NVLink, and over the network only past PCIe switches.
  bool allows_ll128() const {
    const bool knows_chip = planning_.compute_capability >= 70 && planning_.compute_capability != 75 &&
                            (planning_.compute_capability < 90 || request_.version_code >= 21'500);
    const bool is_network_fit = nodes_ == 1 || planning_.has_near_nics;
    const bool is_node_fit = per_node_ == 1 || planning_.has_nvlink;
    return knows_chip && is_network_fit && is_node_fit;
  }

  std::size_t row() const { return static_cast<std::size_t>(std::min<std::int64_t>(nodes_, 3) - 1); }

  // All channels together, before an algorithm takes its part.
  std::int64_t bus_bandwidth() const {
    const Bandwidth planned = nodes_ > 1 ? planning_.between_nodes : planning_.in_node;
    const std::int64_t found = planned.count() / million;
    const bool is_capped = request_.version_code < 21'800 && generation_ == GpuGeneration::ampere;
    return is_capped ? std::min<std::int64_t>(found, 235'000) : found;
  }

  // On two nodes a tree crosses each NIC half as often as a ring, and the search looks for links inside the
  // node that keep up with that. Tables of 2.18 and 2.21 show rings at every large size, those of 2.23 trees.
  std::int64_t tree_bus_bandwidth() const {
    if (nodes_ != 2 || request_.version_code < 22'300)
      return bus_bandwidth();
    return std::min(2 * bus_bandwidth(), planning_.in_node.count() / million);
  }

  const ByProtocol& in_node(const LinkLatencies& latencies) const {
    return planning_.has_nvlink ? latencies.nvlink : latencies.pcie;
  }

  // Across nodes the LL limit goes by the host's processor, inside one by the GPU.
  std::int64_t most_ll() const {
    const GpuGeneration row_of = nodes_ == 1              ? generation_
                                 : planning_.has_amd_host ? GpuGeneration::ampere
                                                          : GpuGeneration::volta;
    return most_ll_bandwidth(row_of, request_.version_code)[row()];
  }

  std::int64_t in_node_latency(const LinkLatencies& latencies, NcclProtocol protocol) const {
    std::int64_t latency = in_node(latencies)[index_of(protocol)];
    if (nodes_ == 1)
      return latency;
    if (constants_.ll_is_slower_across_nodes && protocol == NcclProtocol::ll)
      latency = latency * 18 / 10;
    if (!constants_.counts_network_overhead)
      return latency;
    const std::int64_t overhead = planning_.has_amd_host ? 2'000 : 1'000;
    return std::max(latency, protocol == NcclProtocol::simple ? 3 * overhead : overhead);
  }

  std::int64_t network_latency(NcclProtocol protocol) const {
    const bool is_alone = per_node_ == 1 && request_.version_code >= 22'300;
    return (is_alone ? constants_.tree : constants_.ring).network[index_of(protocol)];
  }

  Estimate ring(NcclProtocol protocol) const {
    Estimate estimate{ring_bandwidth(protocol), constants_.ring_base[index_of(protocol)]};
    const std::int64_t steps = ring_step_count();
    estimate.bandwidth = estimate.bandwidth * ranks_ / steps;
    if (is_rooted()) {
      const auto& latencies = protocol == NcclProtocol::simple ? constants_.tree : constants_.ring;
      estimate.latency += (nodes_ > 1 ? latencies.network : in_node(latencies))[index_of(protocol)];
      return estimate;
    }
    const std::int64_t across = ring_network_steps();
    estimate.latency +=
        (steps - across) * in_node_latency(constants_.ring, protocol) + across * network_latency(protocol);
    if (has_plateau(protocol))
      estimate.latency = parts(estimate.latency, plateau_ppm());
    return estimate;
  }

  std::int64_t ring_step_count() const {
    if (is_rooted())
      return ranks_;
    return is_all_reduce() ? 2 * (ranks_ - 1) : ranks_ - 1;
  }

  std::int64_t ring_network_steps() const {
    if (nodes_ == 1)
      return 0;
    if (!is_all_reduce())
      return nodes_ - 1;
    return constants_.one_node_more_in_rings ? 2 * nodes_ : 2 * (nodes_ - 1);
  }

  std::int64_t ring_bandwidth(NcclProtocol protocol) const {
    const std::int64_t bus = bus_bandwidth();
    if (protocol == NcclProtocol::simple)
      return bus;
    if (protocol == NcclProtocol::ll)
      return std::min(most_ll(), parts(bus, ring_ll_ppm()));
    const bool lacks_peers = per_node_ == 1 && constants_.ring_ll128_is_less_without_peers;
    return std::min(parts(bus, lacks_peers ? 700'000 : 920'000),
                    channels_ * most_ring_ll128_per_channel(generation_)[row()]);
  }

  // Before 2.21 what only gathers or scatters inside a node got a third of the bandwidth, all else a quarter.
  std::int64_t ring_ll_ppm() const {
    const bool is_old = constants_.ring_ll_ppm < 500'000;
    return is_old && nodes_ == 1 && !is_all_reduce() && request_.op != CollectiveOp::reduce
               ? 333'333
               : constants_.ring_ll_ppm;
  }

  bool has_plateau(NcclProtocol protocol) const {
    if (protocol != NcclProtocol::simple || !is_all_reduce() || nodes_ == 1)
      return false;
    const std::int64_t bytes = request_.bytes.count();
    return constants_.plateau_counts_bytes_per_rank ? bytes >= 4096 * ranks_
                                                    : bytes / (channels_ * ranks_) >= 64;
  }

  std::int64_t plateau_ppm() const {
    return generation_ == GpuGeneration::volta ? 1'900'000 : constants_.simple_ring_plateau_ppm;
  }

  Estimate tree(NcclProtocol protocol) const {
    if (!is_all_reduce())
      return {};
    const std::int64_t all =
        std::min(parts(tree_bus_bandwidth(), 920'000),
                 channels_ * most_tree_per_channel(generation_, request_.version_code)[row()]);
    std::int64_t bandwidth = tree_bandwidth(protocol, all) / 2;
    bandwidth = parts(bandwidth, tree_correction_ppm(protocol, request_.bytes.count()));
    const std::int64_t latency = constants_.tree_base[index_of(protocol)] +
                                 2 * ((per_node_ - 1) * in_node_latency(constants_.tree, protocol) +
                                      floor_log2(nodes_) * constants_.tree.network[index_of(protocol)]);
    return {bandwidth, latency};
  }

  std::int64_t tree_bandwidth(NcclProtocol protocol, std::int64_t all) const {
    if (protocol == NcclProtocol::ll)
      return std::min(all * 10 / 38, most_ll());
    if (protocol == NcclProtocol::ll128)
      return std::min(nodes_ == 1 ? all * 7 / 9 : all * 120 / 128,
                      channels_ * most_tree_ll128_per_channel(generation_)[row()]);
    return all;
  }

  bool can_multicast() const { return world_.switch_multicasts && constants_.has_nvls; }

  // Bandwidth of the switch's multicast over all heads, one for each GPU of the node.
  std::int64_t multicast_bandwidth() const {
    const std::int64_t all = planning_.multicast_per_head.count() / million * per_node_;
    if (constants_.nvls_ratio_ppm > 0)
      return parts(all, constants_.nvls_ratio_ppm);
    return parts(all, nvls_efficiency_ppm(generation_)) * (per_node_ - 1) / per_node_ * 2;
  }

  // Of the algorithm's bytes: the ring's n / steps since 2.28, a fixed ratio before.
  std::int64_t multicast_algorithm_bandwidth(std::int64_t bus) const {
    return constants_.nvls_ratio_ppm > 0 ? bus : bus * ranks_ / (2 * (ranks_ - 1));
  }

  Estimate nvls() const {
    if (!can_multicast() || nodes_ > 1 || per_node_ < 2 || !is_all_reduce())
      return {};
    return {multicast_algorithm_bandwidth(multicast_bandwidth()), constants_.nvls_in_node};
  }

  Estimate nvls_tree() const {
    if (!can_multicast() || nodes_ == 1 || !is_all_reduce())
      return {};
    const std::int64_t across = planning_.between_nodes.count() / million;
    std::int64_t bus = std::min(multicast_bandwidth(), nodes_ == 2 ? 2 * across : across);
    if (request_.version_code >= 22'800)
      bus = std::min(bus, channels_ * most_nvls_tree_per_channel(generation_)[row()]);
    return {multicast_algorithm_bandwidth(bus),
            constants_.nvls_in_node + 2 * floor_log2(nodes_) * constants_.nvls_tree_network};
  }

  Estimate pat() const {
    if (!constants_.has_pat || !is_half() || per_node_ > 1 || nodes_ == 1)
      return {};
    return {parts(bus_bandwidth(), 750'000), 8'000 + floor_log2(nodes_) * 14'000 * 10 / 35 + 2'800 * ranks_};
  }

  void add(const char* algorithm, NcclProtocol protocol, const Estimate& estimate,
           std::vector<TunerCandidate>& candidates) const {
    const Collective* registered = Registry<Collective>::find(algorithm);
    if ((request_.algorithm != "auto" && request_.algorithm != algorithm) || registered == nullptr ||
        !can_run(*registered, request_.op, world_))
      return;
    if (estimate.bandwidth <= 0)
      return;
    const Duration moving = time_to_move(request_.bytes, Bandwidth{estimate.bandwidth * million});
    candidates.push_back({.algorithm = algorithm,
                          .protocol = protocol_names[index_of(protocol)],
                          .expected = Duration::nanoseconds(estimate.latency) + moving});
  }

  const TunerRequest& request_;
  const Communicator& world_;
  const PlanningFacts& planning_;
  const NcclConstants& constants_;
  GpuGeneration generation_;
  std::int64_t ranks_;
  std::int64_t nodes_;
  std::int64_t per_node_;
  std::int64_t channels_;
};

// Few bytes do not keep many threads busy: channels are dropped until each thread has its share.
std::uint32_t channels_in_use(const TunerRequest& request, const CollectiveChoice& choice) {
  const bool is_ring_ll = choice.protocol == "ll" && choice.algorithm == "ring";
  const std::int64_t threads = choice.protocol == "ll128" ? 640 : 512;
  const std::int64_t bytes_per_thread =
      choice.protocol == "simple" ? 64 : (is_ring_ll ? 8 * std::int64_t{request.world.ranks()} : 8);
  const auto all = static_cast<std::int64_t>(request.world.channels());
  const std::int64_t fed = request.bytes.count() / (threads * bytes_per_thread);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(fed, 1, std::max<std::int64_t>(all, 1)));
}

// Messages between pairs, or an algorithm that NCCL does not have: taken as asked, with what fits any size.
CollectiveChoice choose_beyond_nccl(const TunerRequest& request) {
  const std::string usual = is_point_to_point(request.op) ? "direct" : "ring";
  return {.algorithm = request.algorithm == "auto" ? usual : request.algorithm,
          .protocol = request.protocol == "auto" ? "simple" : request.protocol,
          .channels = request.world.channels()};
}

}  // namespace

std::vector<TunerCandidate> weigh_as_nccl(const TunerRequest& request) {
  return request.world.ranks() < 2 ? std::vector<TunerCandidate>{} : Tuner(request).weigh();
}

CollectiveChoice choose_as_nccl(const TunerRequest& request) {
  const std::vector<TunerCandidate> candidates =
      is_point_to_point(request.op) ? std::vector<TunerCandidate>{} : weigh_as_nccl(request);
  if (candidates.empty())
    return choose_beyond_nccl(request);
  CollectiveChoice choice{.algorithm = candidates.front().algorithm, .protocol = candidates.front().protocol};
  choice.channels = channels_in_use(request, choice);
  return choice;
}

std::string nccl_version_text(std::int64_t version_code) {
  return std::to_string(version_code / 10'000) + "." + std::to_string(version_code / 100 % 100) + "." +
         std::to_string(version_code % 100);
}

std::optional<std::int64_t> parse_nccl_version(std::string_view text) {
  std::array<std::int64_t, 3> numbers{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  std::size_t count = 0;
  while (count < numbers.size() && at != end) {
    const auto [next, error] = std::from_chars(at, end, numbers[count]);
    if (error != std::errc{} || numbers[count] < 0 || numbers[count] > 99)
      return std::nullopt;
    ++count;
    at = next;
    if (at != end && *at++ != '.')
      return std::nullopt;
  }
  if (count < 2 || at != end || text.back() == '.')
    return std::nullopt;
  return numbers[0] * 10'000 + numbers[1] * 100 + numbers[2];
}

}  // namespace lockstep
