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
    const HopRoute hop = hop_of(path.channel, path.rank);
    std::vector<LinkUse> uses;
    for (const LinkId link : hop.links) {
      const LinkId stand_in = input_.symmetry.representative(link);
      const std::uint32_t members = member_crossings(path.rank, path.channel, stand_in);
      if (std::none_of(uses.begin(), uses.end(), [&](const LinkUse& use) { return use.link == stand_in; }))
        uses.push_back({.link = stand_in, .multiplicity = members * path.multiplicity});
    }
    add_core_use(path.rank, path.multiplicity, uses);
    table_.add(uses, hop.latency + step_cost(path.protocol, hop.slowest_class));
  }

  void add_coupled(const Path& path) {
    std::vector<LinkUse> uses;
    const std::vector<std::uint32_t>& crossings = world_crossings();
    for (std::uint32_t link = 0; link < crossings.size(); ++link)
      if (crossings[link] > 0 && input_.symmetry.is_representative(LinkId{link}))
        uses.push_back({.link = LinkId{link}, .multiplicity = crossings[link]});
    const Duration latency = chain_latency(path, uses);
    for (const Rank rank : input_.symmetry.roles.representatives)
      add_core_use(rank, static_cast<std::uint32_t>(input_.world.rings.size()), uses);
    table_.add(uses, latency);
  }

  // The chain of dependent steps either stays at the narrowest link, which then never rests, or goes round
  // the ring and pays every hop's latency on the way; it takes the longer of the two. Beyond the bytes
  // themselves that is this much.
  Duration chain_latency(const Path& path, const std::vector<LinkUse>& uses) const {
    const Bytes step{path.shape.bytes_per_step};
    const Duration bytes_alone = slowest_time(Bytes{path.shape.bytes_per_hop}, uses);
    Duration longest;
    for (std::uint32_t ring = 0; ring < input_.world.rings.size(); ++ring) {
      const std::vector<Duration> hops = hop_times(ring, step, path.protocol);
      longest = std::max(longest, walk_time(hops, path.shape.chain_steps) - bytes_alone);
      longest = std::max(longest, worst_hop_latency(ring, path.protocol));
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

  // Time of each hop of one node's stretch of the ring, all nodes being alike. Inside one node all hops are
  // alike and the rings move in step, so they always meet on a link they share. Between nodes the slow hop
  // drives them apart: another ring is met as often as it is there, a hop's bytes over a mean hop's time.
  std::vector<Duration> hop_times(std::uint32_t ring, Bytes step, std::uint8_t protocol) const {
    const std::vector<HopRoute> hops = hops_of(ring);
    if (input_.world.nodes == 1)
      return hop_times(hops, protocol,
                       [&](LinkId link) { return link_time(step, link, crossings_of(link)); });
    const std::vector<Duration> alone =
        hop_times(hops, protocol, [&](LinkId link) { return link_time(step, link, 1); });
    const Duration mean =
        Duration::picoseconds(sum(alone).picoseconds() / static_cast<std::int64_t>(hops.size()));
    return hop_times(hops, protocol, [&](LinkId link) { return met_time(step, link, mean); });
  }

  Duration met_time(Bytes step, LinkId link, Duration mean_hop) const {
    const Duration own = link_time(step, link, 1);
    if (mean_hop == Duration::zero())
      return own;
    const Duration others = scaled(own, std::min(own, mean_hop).picoseconds(), mean_hop.picoseconds());
    return own + others * (std::int64_t{crossings_of(link)} - 1);
  }

  template <class LinkTime>
  std::vector<Duration> hop_times(const std::vector<HopRoute>& hops, std::uint8_t protocol,
                                  LinkTime time_on) const {
    std::vector<Duration> times;
    for (const HopRoute& hop : hops) {
      Duration moving;
      for (const LinkId link : hop.links) moving = std::max(moving, time_on(link));
      times.push_back(moving + hop.latency + step_cost(protocol, hop.slowest_class));
    }
    return times;
  }

  std::vector<HopRoute> hops_of(std::uint32_t ring) const {
    std::vector<HopRoute> hops;
    for (const std::uint32_t local : input_.world.rings[ring].local_order)
      hops.push_back(hop_of(ring, Rank{local}));
    return hops;
  }

  std::uint32_t crossings_of(LinkId link) const { return world_crossings()[link.index]; }

  static Duration sum(const std::vector<Duration>& durations) {
    Duration whole;
    for (const Duration duration : durations) whole += duration;
    return whole;
  }

  Duration worst_hop_latency(std::uint32_t ring, std::uint8_t protocol) const {
    Duration worst;
    for (const Duration hop : hop_times(ring, Bytes{0}, protocol)) worst = std::max(worst, hop);
    return worst;
  }

  Duration slowest_time(Bytes bytes, const std::vector<LinkUse>& uses) const {
    Duration slowest;
    for (const LinkUse& use : uses) slowest = std::max(slowest, link_time(bytes, use.link, use.multiplicity));
    return slowest;
  }

  Duration link_time(Bytes bytes, LinkId link, std::uint32_t crossings) const {
    return time_to_move(bytes, share(input_.topology.links()[link].bandwidth, crossings));
  }

  HopRoute hop_of(std::uint32_t ring, Rank rank) const {
    return input_.topology.hop(rank, input_.world.next(ring, rank), nic_of_ring(input_.topology, ring));
  }

  Duration step_cost(std::uint8_t protocol, LinkClass link_class) const {
    if (protocol >= input_.calibration.protocols.size())
      return Duration::zero();
    const auto& step = input_.calibration.protocols[protocol].step;
    const auto found = step.find(link_class);
    return found == step.end() ? Duration::zero() : found->second;
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

  const std::vector<std::uint32_t>& world_crossings() const {
    if (crossings_.empty())
      crossings_ = count_crossings(input_.topology, input_.world);
    return crossings_;
  }

  const RoutingInput& input_;
  RouteTable table_;
  MemberCrossings member_crossings_;
  mutable std::vector<std::uint32_t> crossings_;
};

}  // namespace

std::uint32_t nic_of_ring(const Topology& topology, std::uint32_t ring) {
  return topology.nics_per_node() > 0 ? topology.nic_of_ring(ring) : 0;
}

std::vector<std::uint32_t> count_crossings(const Topology& topology, const Communicator& world) {
  std::vector<std::uint32_t> crossings(topology.links().size());
  if (world.ranks() < 2)
    return crossings;
  for (std::uint32_t ring = 0; ring < world.rings.size(); ++ring)
    for (std::uint32_t rank = 0; rank < world.ranks(); ++rank)
      for (const LinkId link :
           topology.hop(Rank{rank}, world.next(ring, Rank{rank}), nic_of_ring(topology, ring)).links)
        ++crossings[link.index];
  return crossings;
}

RouteTable route_paths(const RoutingInput& input) {
  return Router(input).run();
}

}  // namespace lockstep
