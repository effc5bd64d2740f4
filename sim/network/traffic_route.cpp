#include "sim/network/traffic_route.h"

#include <algorithm>
#include <map>

namespace lockstep {
namespace {

// How often flows cross links. A message between two ranks of a large cluster crosses few: only these are looked at.
class Crossings {
 public:
  explicit Crossings(const RoutingInput& input) : input_(input), of_link_(input.topology.links().size()) {}

  void add(std::span<const Flow> flows) {
    for (const Flow& flow : flows)
      for (const LinkId link : input_.topology.hop(flow).links) {
        std::uint32_t& crossing = at(link);
        crossing = checked_multiplicity(std::int64_t{crossing} + flow.weight, 1);
      }
  }

  // Folded, a link stands for others of its class: the busiest counts.
  void fold() {
    const std::size_t own = crossed_.size();
    for (std::size_t i = 0; i < own; ++i) {
      const std::uint32_t here = of_link_[crossed_[i].index];
      std::uint32_t& busiest = at(input_.symmetry.representative(crossed_[i]));
      busiest = std::max(busiest, here);
    }
    std::erase_if(crossed_, [&](LinkId link) { return !input_.symmetry.is_representative(link); });
    std::sort(crossed_.begin(), crossed_.end());
  }

  std::vector<LinkUse> uses() const {
    std::vector<LinkUse> uses;
    for (const LinkId link : crossed_) uses.push_back({.link = link, .multiplicity = of_link_[link.index]});
    return uses;
  }

  std::uint32_t of(LinkId link) const { return of_link_[link.index]; }

 private:
  std::uint32_t& at(LinkId link) {
    std::uint32_t& crossing = of_link_[link.index];
    if (crossing == 0)
      crossed_.push_back(link);
    return crossing;
  }

  const RoutingInput& input_;
  std::vector<std::uint32_t> of_link_;
  std::vector<LinkId> crossed_;  // once folded the representatives, in order
};

class TrafficRouter {
 public:
  TrafficRouter(const RoutingInput& input, const Traffic& traffic)
      : input_(input), traffic_(traffic), crossings_(count_crossings()) {}

  // The hops are the traffic's own, and so is what crosses them: only the links that all share are folded.
  TrafficRoute route() && {
    TrafficRoute route{.uses = {}, .narrowest = {}, .rounds = {}, .rounds_drift = rounds_drift()};
    for (const std::vector<Flow>& round : traffic_.rounds) route.rounds.push_back(route_round(round));
    // Alike groups take their part of a link, but are no links of this one's chain.
    std::optional<Crossings> shared;
    if (!traffic_.alike.empty())
      shared.emplace(crossings_).add(traffic_.alike);
    route.uses = folded_uses(crossings_);
    for (const LinkUse& use : route.uses) {
      const Bandwidth share_of_one = input_.topology.share_of(use.link, use.multiplicity);
      route.narrowest = std::min(route.narrowest.value_or(share_of_one), share_of_one);
    }
    if (shared)
      route.uses = folded_uses(*shared);
    return route;
  }

 private:
  Crossings count_crossings() const {
    Crossings crossings(input_);
    crossings.add(traffic_.flows);
    return crossings;
  }

  static std::vector<LinkUse> folded_uses(Crossings& crossings) {
    crossings.fold();
    return crossings.uses();
  }

  bool rounds_drift() const { return traffic_.rounds.size() > 1 && mixes_hops(traffic_.rounds.front()); }

  // Hops inside a node and between nodes.
  bool mixes_hops(const std::vector<Flow>& round) const {
    const std::uint32_t gpus = input_.topology.gpus_per_node();
    const auto stays = [&](const Flow& flow) {
      return flow.source.index / gpus == flow.destination.index / gpus;
    };
    return std::any_of(round.begin(), round.end(), stays) && !std::all_of(round.begin(), round.end(), stays);
  }

  RoutedRound route_round(const std::vector<Flow>& flows) const {
    RoutedRound round;
    std::map<HopKind, std::uint32_t> known;
    HopKind kind;  // one for all hops: nothing is allocated for those alike
    for (const Flow& flow : flows) {
      find_kind(flow, kind);
      const auto [found, is_new] = known.try_emplace(kind, static_cast<std::uint32_t>(round.kinds.size()));
      if (is_new) {
        round.kinds.push_back(kind);
        round.counts.push_back(0);
      }
      round.hops.push_back(found->second);
      ++round.counts[found->second];
    }
    return round;
  }

  void find_kind(const Flow& flow, HopKind& kind) const {
    const Topology& topology = input_.topology;
    const HopRoute hop = topology.hop(flow);
    kind.latency = hop.latency;
    kind.slowest_class = hop.slowest_class;
    kind.loads.clear();
    for (const LinkId link : hop.links) {
      // A round may pass a hop that the flows leave out (nothing closes the ring of a broadcast).
      const LinkLoad load{topology.links()[link].bandwidth, std::max(crossings_.of(link), 1u)};
      if (std::find(kind.loads.begin(), kind.loads.end(), load) == kind.loads.end())
        kind.loads.push_back(load);
    }
  }

  const RoutingInput& input_;
  const Traffic& traffic_;
  Crossings crossings_;
};

// Times the hops of one round for one transfer.
class RoundClock {
 public:
  RoundClock(const RoutedRound& round, const Path& path, const Calibration& calibration, bool drifts)
      : round_(round), path_(path), calibration_(calibration), drifts_(drifts) {}

  Duration dearest_hop(Bytes step) const {
    const std::vector<Duration> times = times_by_kind(step);
    return *std::max_element(times.begin(), times.end());
  }

  Duration walk_time(Bytes step) const {
    const std::vector<Duration> times = times_by_kind(step);
    const std::int64_t steps = path_.shape.chain_steps;
    return once_round(times) * (steps / hops()) + dearest_run(times, steps % hops());
  }

 private:
  std::int64_t hops() const { return static_cast<std::int64_t>(round_.hops.size()); }

  Duration once_round(const std::vector<Duration>& times) const {
    Duration whole;
    for (std::size_t kind = 0; kind < times.size(); ++kind) whole += times[kind] * round_.counts[kind];
    return whole;
  }

  // Of hops that follow each other: where in its round a chain ends is nobody's choice.
  Duration dearest_run(const std::vector<Duration>& times, std::int64_t length) const {
    if (length < 2)
      return *std::max_element(times.begin(), times.end()) * length;
    const auto time_at = [&](std::int64_t hop) {
      return times[round_.hops[static_cast<std::size_t>(hop % hops())]];
    };
    Duration run;
    for (std::int64_t hop = 0; hop < length; ++hop) run += time_at(hop);
    Duration dearest = run;
    for (std::int64_t first = 0; first + 1 < hops(); ++first) {
      run = run - time_at(first) + time_at(first + length);
      dearest = std::max(dearest, run);
    }
    return dearest;
  }

  // Inside one node all hops are alike and the chains move in step, so they always meet on a link they share.
  // Between nodes the slow hop drives them apart: another is met as often as it is there, a hop's bytes over
  // a mean hop's time.
  std::vector<Duration> times_by_kind(Bytes step) const {
    if (!drifts_)
      return times_by_kind(
          [&](const LinkLoad& load) { return time_to_move(step, share(load.bandwidth, load.crossings)); });
    const std::vector<Duration> alone =
        times_by_kind([&](const LinkLoad& load) { return time_to_move(step, load.bandwidth); });
    const Duration mean = Duration::picoseconds(once_round(alone).picoseconds() / hops());
    return times_by_kind([&](const LinkLoad& load) { return met_time(step, load, mean); });
  }

  template <class LoadTime>
  std::vector<Duration> times_by_kind(LoadTime time_of) const {
    std::vector<Duration> times;
    for (const HopKind& kind : round_.kinds) {
      Duration moving;
      for (const LinkLoad& load : kind.loads) moving = std::max(moving, time_of(load));
      times.push_back(moving + kind.latency + step_cost(calibration_, path_, kind.slowest_class) +
                      path_.shape.late);
    }
    return times;
  }

  static Duration met_time(Bytes step, const LinkLoad& load, Duration mean_hop) {
    const Duration own = time_to_move(step, load.bandwidth);
    if (mean_hop == Duration::zero())
      return own;
    const Duration others = scaled(own, std::min(own, mean_hop).picoseconds(), mean_hop.picoseconds());
    return own + others * (std::int64_t{load.crossings} - 1);
  }

  const RoutedRound& round_;
  const Path& path_;
  const Calibration& calibration_;
  bool drifts_;
};

}  // namespace

TrafficRoute route_traffic(const RoutingInput& input, const Traffic& traffic) {
  return TrafficRouter(input, traffic).route();
}

// The chain of dependent messages either stays at the narrowest link, which then never rests, or goes along
// its round of hops and pays every hop's latency on the way; it takes the longer of the two.
Duration chain_latency(const TrafficRoute& route, const Path& path, const Calibration& calibration) {
  const Duration bytes_alone =
      route.narrowest ? time_to_move(Bytes{path.shape.bytes_per_hop}, *route.narrowest) : Duration::zero();
  Duration longest;
  for (const RoutedRound& round : route.rounds) {
    const RoundClock clock(round, path, calibration, route.rounds_drift);
    longest = std::max(longest, clock.walk_time(Bytes{path.shape.bytes_per_step}) - bytes_alone);
    longest = std::max(longest, clock.dearest_hop(Bytes{0}));
  }
  return longest;
}

Duration step_cost(const Calibration& calibration, const Path& path, LinkClass link_class) {
  if (path.protocol >= calibration.protocols.size())
    return Duration::zero();
  const auto& step = calibration.protocols[path.protocol].step;
  const auto found = step.find(link_class);
  if (found == step.end())
    return Duration::zero();
  return path.algorithm < calibration.algorithms.size()
             ? scaled(found->second, calibration.algorithms[path.algorithm].step_scale)
             : found->second;
}

}  // namespace lockstep
