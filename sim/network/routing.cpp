#include "sim/network/routing.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/base/check.h"

namespace lockstep {
namespace {

constexpr std::int64_t million = 1'000'000;

// How often hops of one role on one ring cross a representative link.
using MemberCrossings = std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t>;

class Router {
 public:
  explicit Router(const RoutingInput& input) : input_(input) {}

  RouteTable run() {
    for (const Path& path : input_.plan.paths) add(path);
    return std::move(table_);
  }

 private:
  void add(const Path& path) {
    switch (path.kind) {
      case PathKind::kernel:
        return add_kernel(path);
      case PathKind::hop:
        return add_hop(path);
      case PathKind::coupled:
        return add_coupled(path);
    }
  }

  void add_kernel(const Path& path) {
    const LinkId link = input_.topology.compute_link(path.rank);
    const std::int64_t rate = input_.topology.links()[link].bandwidth.count();
    const std::int64_t kept = rate / input_.compute_slowdown_ppm * million;
    const LinkUse use{.link = link, .multiplicity = 1, .reserved = std::max<std::int64_t>(rate - kept, 0)};
    table_.add(std::span(&use, 1), Duration::zero(), kernel_weight());
  }

  // Core time taken by a byte sent, in the compute link's own units.
  std::uint32_t core_units_per_byte() const {
    return input_.takes_core_time ? static_cast<std::uint32_t>(input_.calibration.core_time_per_byte_ps) : 0;
  }

  // Where communication wants more of a core than its share, kernel and bytes are offered alike: the kernel
  // must then get the rest of the core for what the bytes' share allows them.
  std::int64_t kernel_weight() const {
    const std::int64_t share_ppm = input_.calibration.core_share_ppm;
    return std::max<std::int64_t>(std::int64_t{core_units_per_byte()} * (million - share_ppm) / share_ppm, 1);
  }

  void add_core_use(Rank rank, std::uint32_t times, std::vector<LinkUse>& uses) const {
    if (core_units_per_byte() > 0)
      uses.push_back(
          {.link = input_.topology.compute_link(rank), .multiplicity = core_units_per_byte() * times});
  }

  void add_hop(const Path& path) {
    const HopRoute hop =
        input_.topology.hop(path.rank, path.destination, nic_of_ring(input_.topology, path.channel));
    std::vector<LinkUse> uses;
    for (const LinkId link : hop.links) {
      const LinkId stand_in = input_.symmetry.representative(link);
      const std::uint32_t members = member_crossings(path.rank, path.channel, stand_in);
      if (std::none_of(uses.begin(), uses.end(), [&](const LinkUse& use) { return use.link == stand_in; }))
        uses.push_back({.link = stand_in, .multiplicity = members * path.multiplicity});
    }
    add_core_use(path.rank, path.multiplicity, uses);
    table_.add(uses, hop.latency + step_cost(path, hop.slowest_class));
  }

  void add_coupled(const Path& path) {
    const Traffic& traffic = input_.plan.traffics[path.traffic];
    const std::vector<std::uint32_t>& crossings = crossings_of(path.traffic);
    std::vector<LinkUse> uses;
    for (std::uint32_t link = 0; link < crossings.size(); ++link)
      if (crossings[link] > 0 && input_.symmetry.is_representative(LinkId{link}))
        uses.push_back({.link = LinkId{link}, .multiplicity = crossings[link]});
    const Duration latency = chain_latency(path, crossings, uses);
    add_core_uses(traffic, uses);
    table_.add(uses, latency);
  }

  void add_core_uses(const Traffic& traffic, std::vector<LinkUse>& uses) const {
    if (core_units_per_byte() == 0)
      return;
    std::vector<std::uint32_t> sends(input_.world.ranks());
    for (const Flow& flow : traffic.flows) sends[flow.source.index] += flow.weight;
    // Folded, a rank stands for all of its role: the busiest counts.
    const Roles& roles = input_.symmetry.roles;
    std::vector<std::uint32_t> busiest(roles.representatives.size());
    for (std::uint32_t rank = 0; rank < sends.size(); ++rank)
      busiest[roles.role_of[rank]] = std::max(busiest[roles.role_of[rank]], sends[rank]);
    for (std::size_t role = 0; role < busiest.size(); ++role)
      if (busiest[role] > 0)
        add_core_use(roles.representatives[role], busiest[role], uses);
  }

  // The chain of dependent messages either stays at the narrowest link, which then never rests, or goes along
  // its round of hops and pays every hop's latency on the way; it takes the longer of the two. Beyond the
  // bytes themselves that is this much.
  Duration chain_latency(const Path& path, const std::vector<std::uint32_t>& crossings,
                         const std::vector<LinkUse>& uses) const {
    const Traffic& traffic = input_.plan.traffics[path.traffic];
    const Duration bytes_alone = slowest_time(Bytes{path.shape.bytes_per_hop}, uses);
    const bool rounds_drift = traffic.rounds.size() > 1 && mixes_hops(traffic.rounds.front());
    Duration longest;
    for (const std::vector<Flow>& round : traffic.rounds) {
      const ChainHops chain{
          .path = path, .hops = hops_of(round), .crossings = crossings, .drifts = rounds_drift};
      const Bytes step{path.shape.bytes_per_step};
      longest = std::max(longest, walk_time(hop_times(chain, step), path.shape.chain_steps) - bytes_alone);
      for (const Duration hop : hop_times(chain, Bytes{0})) longest = std::max(longest, hop);
    }
    return longest;
  }

  static Duration walk_time(const std::vector<Duration>& hops, std::int64_t steps) {
    const auto round = static_cast<std::int64_t>(hops.size());
    return sum(hops) * (steps / round) + dearest_run(hops, steps % round);
  }

  static Duration dearest_run(const std::vector<Duration>& hops, std::int64_t length) {
    Duration dearest;
    for (std::size_t first = 0; first < hops.size() && length > 0; ++first) {
      Duration run;
      for (std::int64_t next = 0; next < length; ++next)
        run += hops[(first + static_cast<std::size_t>(next)) % hops.size()];
      dearest = std::max(dearest, run);
    }
    return dearest;
  }

  // Hops inside a node and between nodes.
  bool mixes_hops(const std::vector<Flow>& round) const {
    const auto stays = [&](const Flow& flow) {
      return input_.world.node_of(flow.source) == input_.world.node_of(flow.destination);
    };
    return std::any_of(round.begin(), round.end(), stays) && !std::all_of(round.begin(), round.end(), stays);
  }

  struct ChainHops {
    const Path& path;
    std::vector<HopRoute> hops;
    const std::vector<std::uint32_t>& crossings;
    bool drifts;
  };

  // Time of each hop of a round. Inside one node all hops are alike and the chains move in step, so they
  // always meet on a link they share. Between nodes the slow hop drives them apart: another is met as often
  // as it is there, a hop's bytes over a mean hop's time.
  std::vector<Duration> hop_times(const ChainHops& chain, Bytes step) const {
    if (!chain.drifts)
      return hop_times(chain,
                       [&](LinkId link) { return link_time(step, link, chain.crossings[link.index]); });
    const std::vector<Duration> alone =
        hop_times(chain, [&](LinkId link) { return link_time(step, link, 1); });
    const Duration mean =
        Duration::picoseconds(sum(alone).picoseconds() / static_cast<std::int64_t>(alone.size()));
    return hop_times(chain,
                     [&](LinkId link) { return met_time(step, link, mean, chain.crossings[link.index]); });
  }

  Duration met_time(Bytes step, LinkId link, Duration mean_hop, std::uint32_t crossings) const {
    const Duration own = link_time(step, link, 1);
    if (mean_hop == Duration::zero())
      return own;
    const Duration others = scaled(own, std::min(own, mean_hop).picoseconds(), mean_hop.picoseconds());
    return own + others * (std::max<std::int64_t>(crossings, 1) - 1);
  }

  template <class LinkTime>
  std::vector<Duration> hop_times(const ChainHops& chain, LinkTime time_on) const {
    std::vector<Duration> times;
    for (const HopRoute& hop : chain.hops) {
      Duration moving;
      for (const LinkId link : hop.links) moving = std::max(moving, time_on(link));
      times.push_back(moving + hop.latency + step_cost(chain.path, hop.slowest_class));
    }
    return times;
  }

  std::vector<HopRoute> hops_of(const std::vector<Flow>& round) const {
    std::vector<HopRoute> hops;
    for (const Flow& flow : round)
      hops.push_back(
          input_.topology.hop(flow.source, flow.destination, nic_of_ring(input_.topology, flow.channel)));
    return hops;
  }

  static Duration sum(const std::vector<Duration>& durations) {
    Duration whole;
    for (const Duration duration : durations) whole += duration;
    return whole;
  }

  Duration slowest_time(Bytes bytes, const std::vector<LinkUse>& uses) const {
    Duration slowest;
    for (const LinkUse& use : uses) slowest = std::max(slowest, link_time(bytes, use.link, use.multiplicity));
    return slowest;
  }

  Duration link_time(Bytes bytes, LinkId link, std::uint32_t crossings) const {
    // A round may pass a hop that the flows leave out (nothing closes the ring of a broadcast).
    return time_to_move(bytes, share(input_.topology.links()[link].bandwidth, std::max(crossings, 1u)));
  }

  HopRoute hop_of(std::uint32_t ring, Rank rank) const {
    return input_.topology.hop(rank, input_.world.next(ring, rank), nic_of_ring(input_.topology, ring));
  }

  Duration step_cost(const Path& path, LinkClass link_class) const {
    if (path.protocol >= input_.calibration.protocols.size())
      return Duration::zero();
    const auto& step = input_.calibration.protocols[path.protocol].step;
    const auto found = step.find(link_class);
    if (found == step.end())
      return Duration::zero();
    return path.algorithm < input_.calibration.algorithms.size()
               ? scaled(found->second, input_.calibration.algorithms[path.algorithm].step_ppm, million)
               : found->second;
  }

  std::uint32_t member_crossings(Rank rank, std::uint32_t ring, LinkId link) {
    if (input_.symmetry.roles.representatives.size() == input_.symmetry.roles.ranks())
      return 1;
    if (member_crossings_.empty())
      count_members();
    return member_crossings_.at({input_.symmetry.roles.role_of[rank.index], ring, link.index});
  }

  void count_members() {
    for (std::uint32_t ring = 0; ring < input_.world.rings.size(); ++ring)
      for (std::uint32_t rank = 0; rank < input_.world.ranks(); ++rank)
        for (const LinkId link : hop_of(ring, Rank{rank}).links)
          if (input_.symmetry.is_representative(link))
            ++member_crossings_[{input_.symmetry.roles.role_of[rank], ring, link.index}];
  }

  // By link, for a whole traffic. Folded, a link stands for others of its class: the busiest counts.
  const std::vector<std::uint32_t>& crossings_of(TrafficId traffic) {
    const auto [found, is_new] = crossings_.try_emplace(traffic.index);
    if (is_new) {
      const std::vector<std::uint32_t> loads =
          count_crossings(input_.topology, input_.plan.traffics[traffic].flows);
      found->second.resize(loads.size());
      for (std::uint32_t link = 0; link < loads.size(); ++link) {
        std::uint32_t& busiest = found->second[input_.symmetry.representative(LinkId{link}).index];
        busiest = std::max(busiest, loads[link]);
      }
      for (std::uint32_t link = 0; link < loads.size(); ++link)
        found->second[link] = std::max(found->second[link], loads[link]);
    }
    return found->second;
  }

  const RoutingInput& input_;
  RouteTable table_;
  MemberCrossings member_crossings_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> crossings_;  // by traffic
};

}  // namespace

std::uint32_t nic_of_ring(const Topology& topology, std::uint32_t ring) {
  return topology.nics_per_node() > 0 ? topology.nic_of_ring(ring) : 0;
}

std::vector<std::uint32_t> count_crossings(const Topology& topology, std::span<const Flow> flows) {
  std::vector<std::uint32_t> crossings(topology.links().size());
  for (const Flow& flow : flows)
    for (const LinkId link :
         topology.hop(flow.source, flow.destination, nic_of_ring(topology, flow.channel)).links)
      crossings[link.index] += flow.weight;
  return crossings;
}

RouteTable route_paths(const RoutingInput& input) {
  return Router(input).run();
}

}  // namespace lockstep
