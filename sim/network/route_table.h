#pragma once

// What a transfer crosses: links with multiplicities, the latency after its last byte, what bounds it where it is
// a kernel, and what a collective holds meanwhile.
//
// Idea:      all routes in flat arrays, made once; the engine only reads them.
// Invariant: route i belongs to path i of the plan.
// Cost:      16 bytes a use, once for all routes that have it in common; 32 bytes a route.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/network/interference.h"

namespace lockstep {

using LinkId = Id<struct LinkTag>;
using RouteId = Id<struct RouteTag>;
using UsesId = Id<struct UsesTag>;

struct LinkUse {
  LinkId link;
  std::uint32_t multiplicity = 1;
  // What a join on this route holds back.
  std::uint32_t reserved_sms = 0;
  std::uint32_t reserved_memory = 0;  // of its bandwidth, in parts per million: half as long as a Ratio
  bool operator==(const LinkUse&) const = default;
};

// Routes stand in the order of the plan's paths: RouteId i belongs to PathId i.
class RouteTable {
 public:
  RouteTable() = default;
  // `interference`: what reserved SMs do to what crosses their link.
  explicit RouteTable(const Interference& interference) : interference_(interference) {}

  // Uses that any number of routes may have in common.
  UsesId keep(std::span<const LinkUse> uses) {
    begin_.push_back(static_cast<std::uint32_t>(uses_.size()));
    uses_.insert(uses_.end(), uses.begin(), uses.end());
    return UsesId{static_cast<std::uint32_t>(begin_.size() - 1)};
  }
  // `weight`: how fast a transfer on this route goes for each share it is offered (fair_share.h).
  RouteId add(UsesId uses, Duration latency, std::int64_t weight = 1, const KernelBound& bound = {}) {
    return routes_.push_back({.uses = uses, .latency = latency, .weight = weight, .bound = bound});
  }
  RouteId add(std::span<const LinkUse> uses, Duration latency, std::int64_t weight = 1,
              const KernelBound& bound = {}) {
    return add(keep(uses), latency, weight, bound);
  }
  std::span<const LinkUse> uses(RouteId route) const { return uses(routes_[route].uses); }
  std::span<const LinkUse> uses(UsesId list) const {
    const std::size_t first = begin_[list.index];
    const std::size_t last = list.index + 1 < begin_.size() ? begin_[list.index + 1] : uses_.size();
    return std::span(uses_).subspan(first, last - first);
  }
  std::size_t lists() const { return begin_.size(); }
  Duration latency(RouteId route) const { return routes_[route].latency; }
  std::int64_t weight(RouteId route) const { return routes_[route].weight; }
  void set_latency(RouteId route, Duration latency) { routes_[route].latency = latency; }
  const KernelBound& bound(RouteId route) const { return routes_[route].bound; }
  const Interference& interference() const { return interference_; }
  std::size_t size() const { return routes_.size(); }

 private:
  struct Route {
    UsesId uses;
    Duration latency;
    std::int64_t weight;
    KernelBound bound;
  };

  Interference interference_;
  std::vector<std::uint32_t> begin_;  // by UsesId
  std::vector<LinkUse> uses_;
  IdVector<RouteId, Route> routes_;
};

}  // namespace lockstep
