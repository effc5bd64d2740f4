#pragma once

// What a traffic makes of its links, whatever bytes it moves.
//
// Problem:   a plan moves few traffics, each in many sizes and protocols; walking the hops of a thousand
//            ranks for every one of these would cost more than all else.
// Idea:      links, loads and latencies do not depend on bytes, so they are found once. Of a hop only what
//            its time depends on is kept, and hops alike in that are one kind: a transfer times the kinds.
// Invariant: the load on a representative link is that of the busiest link it stands for.
// Cost:      linear in hops to find; then linear in kinds for each transfer, and in the hops of a round where
//            its chain ends amid one.

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/network/routing.h"

namespace lockstep {

// How many of the traffic's flows a link carries.
struct LinkLoad {
  Bandwidth bandwidth;
  std::uint32_t crossings = 1;
  auto operator<=>(const LinkLoad&) const = default;
};

// What the time of a hop depends on.
struct HopKind {
  Duration latency;
  LinkClass slowest_class = LinkClass::nvlink;
  std::vector<LinkLoad> loads;
  auto operator<=>(const HopKind&) const = default;
};

// The hops that a chain of dependent messages goes along, again and again.
struct RoutedRound {
  std::vector<HopKind> kinds;
  std::vector<std::uint32_t> hops;   // each one's kind, in their order
  std::vector<std::int64_t> counts;  // of hops, by kind
};

struct TrafficRoute {
  std::vector<LinkUse> uses;           // representative links, as often as they are crossed
  std::optional<Bandwidth> narrowest;  // share of a crossing; none where nothing is crossed
  std::vector<RoutedRound> rounds;
  bool rounds_drift = false;  // chains with fast and slow hops, driven apart by the slow ones
};

TrafficRoute route_traffic(const RoutingInput& input, const Traffic& traffic);

// What the longest chain of the coupled transfer `path` takes beyond the bytes themselves.
Duration chain_latency(const TrafficRoute& route, const Path& path, const Calibration& calibration);

// What a message costs besides the wire, by the slowest class of link that it crosses.
Duration step_cost(const Calibration& calibration, const Path& path, LinkClass link_class);

}  // namespace lockstep
