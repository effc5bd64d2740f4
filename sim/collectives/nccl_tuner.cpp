#include "sim/collectives/nccl_tuner.h"

#include <algorithm>
#include <charconv>

#include "sim/collectives/nccl_model.h"
#include "sim/collectives/pairwise.h"

namespace lockstep {
namespace {

constexpr std::array<NcclProtocol, 3> all_protocols{NcclProtocol::ll, NcclProtocol::ll128,
                                                    NcclProtocol::simple};
constexpr std::array<const char*, 3> protocol_names{"ll", "ll128", "simple"};

const char* name_of(NcclProtocol protocol) {
  return protocol_names[static_cast<std::size_t>(protocol)];
}

// LL128 relies on 128 bytes arriving whole: over NVLink, and over the network only past PCIe switches.
bool allows_ll128(const TunerRequest& request) {
  const Communicator& world = request.world;
  const PlanningFacts& planning = world.planning;
  const bool has_it = planning.compute_capability >= 70 && planning.compute_capability != 75 &&
                      knows_chip(request.version_code, planning.compute_capability);
  const bool is_network_fit = world.nodes == 1 || planning.has_near_nics;
  const bool is_node_fit = world.gpus_per_node == 1 || planning.has_nvlink;
  return has_it && is_network_fit && is_node_fit;
}

// Protocols that nothing is known of are not chosen.
bool is_known(const Communicator& world, NcclProtocol protocol) {
  const auto is_it = [&](const ProtocolFacts& facts) { return facts.name == name_of(protocol); };
  return world.protocols.empty() || std::any_of(world.protocols.begin(), world.protocols.end(), is_it);
}

// Of what a network's software sets NCCL_PROTO to. What that names runs wherever it is cheapest: NCCL asks the topology
// only of what nobody named.
bool is_named(const std::vector<std::string>& protocols, NcclProtocol protocol) {
  return std::find(protocols.begin(), protocols.end(), name_of(protocol)) != protocols.end();
}

bool allows(const TunerRequest& request, NcclProtocol protocol) {
  if (!is_known(request.world, protocol))
    return false;
  if (request.protocol != "auto")
    return request.protocol == name_of(protocol);
  const std::vector<std::string>& set = request.world.planning.protocols;
  if (!set.empty() && set.size() < all_protocols.size())
    return is_named(set, protocol);
  return protocol != NcclProtocol::ll128 || allows_ll128(request);
}

bool allows(const TunerRequest& request, const std::string& algorithm) {
  const Collective* registered = Registry<Collective>::find(algorithm);
  return (request.algorithm == "auto" || request.algorithm == algorithm) && registered != nullptr &&
         can_run(*registered, request.op, request.world);
}

// What of a request is allowed, with what NCCL expects of it.
class Weighing {
 public:
  explicit Weighing(const TunerRequest& request) : request_(request) {
    const NcclCase asked(request);
    for (const NcclProtocol protocol : all_protocols) {
      if (!allows(request, protocol))
        continue;
      add("ring", protocol, ring_estimate(asked, protocol));
      add("tree", protocol, tree_estimate(asked, protocol));
    }
    if (allows(request, NcclProtocol::simple)) {
      add("nvls", NcclProtocol::simple, nvls_estimate(asked));
      add("nvls_tree", NcclProtocol::simple, nvls_tree_estimate(asked));
      add("pat", NcclProtocol::simple, pat_estimate(asked));
    }
  }

  // Cheapest first.
  std::vector<TunerCandidate> candidates() {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const auto& a, const auto& b) { return a.expected < b.expected; });
    return std::move(candidates_);
  }

 private:
  void add(const char* algorithm, NcclProtocol protocol, const NcclEstimate& estimate) {
    if (estimate.bandwidth <= 0 || !allows(request_, algorithm))
      return;
    const Duration moving = time_to_move(request_.bytes, Bandwidth{estimate.bandwidth * million});
    candidates_.push_back({.algorithm = algorithm,
                           .protocol = name_of(protocol),
                           .expected = Duration::nanoseconds(estimate.latency) + moving});
  }

  const TunerRequest& request_;
  std::vector<TunerCandidate> candidates_;
};

// The switch's own (NVIDIA/nccl src/init.cc, nvlsChannels): as many whatever the bytes.
std::uint32_t channels_of_nvls(const Communicator& world) {
  constexpr std::int64_t blackwell = 100;
  const std::uint32_t wanted =
      world.planning.compute_capability < blackwell ? 16 : (world.nodes == 1 ? 24 : 32);
  return std::clamp(world.channels(), 1u, wanted);
}

// Few bytes do not keep many threads busy: channels are dropped until each thread has its share.
std::uint32_t channels_in_use(const TunerRequest& request, const CollectiveChoice& choice) {
  if (choice.algorithm == "nvls" || choice.algorithm == "nvls_tree")
    return channels_of_nvls(request.world);
  const bool is_ring_ll = choice.protocol == "ll" && choice.algorithm == "ring";
  const std::int64_t threads = choice.protocol == "ll128" ? 640 : 512;
  const std::int64_t bytes_per_thread =
      choice.protocol == "simple" ? 64 : (is_ring_ll ? 8 * std::int64_t{request.world.ranks()} : 8);
  const auto all = static_cast<std::int64_t>(request.world.channels());
  const std::int64_t fed = request.bytes.count() / (threads * bytes_per_thread);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(fed, 1, std::max<std::int64_t>(all, 1)));
}

// Short messages between pairs go by LL (NCCL_P2P_LL_THRESHOLD, 16 KiB, known since 2.14); since 2.22 the threshold
// counts for each channel of a message (NVIDIA/nccl src/enqueue.cc, addP2pToPlan). Pairs in different nodes have no
// buffers for it (NCCL_ALLOC_P2P_NET_LL_BUFFERS, 0), and what ends last is theirs. NCCL_PROTO says nothing of messages.
bool is_sent_by_ll(const TunerRequest& request) {
  constexpr std::int64_t threshold = 16 * 1024;
  if (!is_point_to_point(request.op) || request.world.nodes > 1 || request.version_code < 21'400 ||
      !is_known(request.world, NcclProtocol::ll))
    return false;
  const std::int64_t message =
      request.op == CollectiveOp::send_recv
          ? request.bytes.count()
          : divided_up(request.bytes.count(), std::max<std::int64_t>(request.world.ranks(), 1));
  return message <= threshold * (request.version_code < 22'200 ? 1 : least_channels_of_message(request.world));
}

// Messages between pairs, or an algorithm that NCCL does not have: taken as asked.
CollectiveChoice choose_beyond_nccl(const TunerRequest& request) {
  const std::string usual = is_point_to_point(request.op) ? "direct" : "ring";
  const std::string fitting = is_sent_by_ll(request) ? "ll" : "simple";
  return {.algorithm = request.algorithm == "auto" ? usual : request.algorithm,
          .protocol = request.protocol == "auto" ? fitting : request.protocol,
          .channels = request.world.channels()};
}

}  // namespace

std::vector<TunerCandidate> weigh_as_nccl(const TunerRequest& request) {
  return request.world.ranks() < 2 ? std::vector<TunerCandidate>{} : Weighing(request).candidates();
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

bool is_simple_alone(std::string_view algorithm) {
  return algorithm == "nvls" || algorithm == "nvls_tree" || algorithm == "pat" || algorithm == "collnet";
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
