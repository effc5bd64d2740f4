#include "sim/network/routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "sim/base/error.h"
#include "sim/network/route_library.h"
#include "sim/network/traffic_route.h"

namespace lockstep {
namespace {

constexpr std::int64_t finest_weight = 1'000;

// How often hops of one role on one ring cross a representative link.
using MemberCrossings = std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t>;

class Router {
 public:
  explicit Router(const RoutingInput& input) : input_(input), table_(input.interference) {}

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
    const LinkUse use{.link = input_.topology.compute_link(path.rank),
                      .multiplicity = 1,
                      .reserved_sms = path.held.channels,
                      .reserved_memory = static_cast<std::uint32_t>(
                          input_.interference.memory_share(path.held.sent).parts_per_million())};
    table_.add(std::span(&use, 1), Duration::zero(), kernel_weight() * weight_scale(), path.bound);
  }

  // Core time taken by a byte sent, in the compute link's own units.
  std::int64_t core_units_per_byte() const {
    return input_.takes_core_time ? input_.calibration.core_time_per_byte_ps : 0;
  }

  // Where communication wants more of a core than its share, kernel and bytes are offered alike: the kernel
  // must then get the rest of the core for what the bytes' share allows them.
  std::int64_t kernel_weight() const {
    const Ratio share = input_.calibration.core_share;
    const std::int64_t rest = (Ratio::one() - share).parts_per_million();
    return std::max<std::int64_t>(core_units_per_byte() * rest / share.parts_per_million(), 1);
  }

  // Weights of messages are parts of this; 1 where all get their share, which keeps offers exact.
  std::int64_t weight_scale() const {
    return core_units_per_byte() > 0 && input_.calibration.core_wait > Duration::zero() ? finest_weight : 1;
  }

  // Beside a kernel, a message that takes c of the core at a share s of it is moved in c / s; after a wait of
  // w it is in c / s + w, as if its share were the smaller s' = c / (c / s + w). Of two that want more of a
  // core than there is, each gets what its weight says: s' / (1 - s') of what s / (1 - s) would be.
  std::int64_t message_weight(const Path& path) const {
    const std::int64_t bytes = path.shape.bytes_per_step;
    if (weight_scale() == 1 || bytes == 0)
      return weight_scale();
    const Ratio share = input_.calibration.core_share;
    const Duration core_time = Duration::picoseconds(core_units_per_byte()) * bytes;
    const Duration moving = scaled(core_time, Ratio::one() - share);
    const Duration waiting = scaled(input_.calibration.core_wait, share);
    return scaled(Duration::picoseconds(finest_weight), moving.picoseconds(),
                  (moving + waiting).picoseconds())
        .picoseconds();
  }

  // A host's own link is its memory, not a core.
  void add_core_use(Rank rank, std::uint32_t times, std::vector<LinkUse>& uses) const {
    if (core_units_per_byte() > 0 && rank.index < input_.topology.ranks())
      uses.push_back({.link = input_.topology.compute_link(rank),
                      .multiplicity = checked_multiplicity(core_units_per_byte(), times)});
  }

  void add_hop(const Path& path) {
    const HopRoute hop = input_.topology.hop(
        {.source = path.rank, .destination = path.destination, .channel = path.channel, .exit = path.exit});
    std::vector<LinkUse> uses;
    for (const LinkId link : hop.links) {
      const LinkId stand_in = input_.symmetry.representative(link);
      const std::uint32_t members = member_crossings(path.rank, path.channel, stand_in);
      if (std::none_of(uses.begin(), uses.end(), [&](const LinkUse& use) { return use.link == stand_in; }))
        uses.push_back({.link = stand_in, .multiplicity = checked_multiplicity(members, path.multiplicity)});
    }
    add_core_use(path.rank, path.multiplicity, uses);
    // Where nothing is modelled on the way, a byte takes the receiver a picosecond.
    if (uses.empty())
      uses.push_back({.link = input_.topology.compute_link(path.destination)});
    table_.add(uses, hop.latency + step_cost(input_.calibration, path, hop.slowest_class) + path.shape.late,
               message_weight(path));
  }

  // Transfers of one traffic differ in latency and weight alone.
  void add_coupled(const Path& path) {
    const KnownTraffic& traffic = find_traffic(path.traffic);
    table_.add(traffic.uses, chain_latency(traffic.route, path, input_.calibration), message_weight(path));
  }

  struct KnownTraffic {
    TrafficRoute route;
    UsesId uses;
  };

  const KnownTraffic& find_traffic(TrafficId id) {
    const auto [known, is_new] = traffics_.try_emplace(id);
    if (is_new) {
      const Traffic& traffic = input_.plan.traffics[id];
      known->second.route = find_route(traffic);
      std::vector<LinkUse> uses = known->second.route.uses;
      add_core_uses(traffic, uses);
      known->second.uses = table_.keep(uses);
    }
    return known->second;
  }

  TrafficRoute find_route(const Traffic& traffic) const {
    if (input_.library == nullptr || traffic.name.empty())
      return route_traffic(input_, traffic);
    if (const TrafficRoute* known = input_.library->find(traffic.name))
      return *known;
    TrafficRoute route = route_traffic(input_, traffic);
    input_.library->keep(traffic.name, route, flow_count(traffic));
    return route;
  }

  void add_core_uses(const Traffic& traffic, std::vector<LinkUse>& uses) const {
    if (core_units_per_byte() == 0)
      return;
    std::vector<std::uint32_t> sends(input_.topology.ranks());
    for (const Flow& flow : traffic.flows) {
      std::uint32_t& sent = sends[flow.source.index];
      sent = checked_multiplicity(std::int64_t{sent} + flow.weight, 1);
    }
    // Folded, a rank stands for all of its role: the busiest counts.
    const Roles& roles = input_.symmetry.roles;
    std::vector<std::uint32_t> busiest(roles.representatives.size());
    for (std::uint32_t rank = 0; rank < sends.size(); ++rank)
      busiest[roles.role_of[rank]] = std::max(busiest[roles.role_of[rank]], sends[rank]);
    for (std::size_t role = 0; role < busiest.size(); ++role)
      if (busiest[role] > 0)
        add_core_use(roles.representatives[role], busiest[role], uses);
  }

  HopRoute hop_of(std::uint32_t ring, Rank rank) const {
    return input_.topology.hop(input_.world.flow(ring, rank));
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

  const RoutingInput& input_;
  RouteTable table_;
  MemberCrossings member_crossings_;
  std::map<TrafficId, KnownTraffic> traffics_;
};

}  // namespace

std::uint32_t checked_multiplicity(std::int64_t a, std::int64_t b) {
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  const Unsigned128 product = static_cast<Unsigned128>(a) * static_cast<Unsigned128>(b);
  if (product > most)
    throw ConfigError(
        fmt::format("/cluster: found more than {} shares of one link for one collective, expected "
                    "fewer ranks, or less core time per byte",
                    most));
  return static_cast<std::uint32_t>(product);
}

std::vector<std::uint32_t> count_crossings(const Topology& topology, std::span<const Flow> flows) {
  std::vector<std::uint32_t> crossings(topology.links().size());
  for (const Flow& flow : flows)
    for (const LinkId link : topology.hop(flow).links) {
      std::uint32_t& crossing = crossings[link.index];
      crossing = checked_multiplicity(std::int64_t{crossing} + flow.weight, 1);
    }
  return crossings;
}

RouteTable route_paths(const RoutingInput& input) {
  return Router(input).run();
}

}  // namespace lockstep
