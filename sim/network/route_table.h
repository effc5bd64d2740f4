#pragma once

// What a transfer crosses: links with multiplicities, the latency after its last byte, and the capacity
// that is set aside while it is held.
//
// Idea:      all routes in one flat array, made once; the engine only reads it.
// Invariant: route i belongs to path i of the plan.
// Cost:      16 bytes a use.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"

namespace lockstep {

using LinkId = Id<struct LinkTag>;
using RouteId = Id<struct RouteTag>;

struct LinkUse {
  LinkId link;
  std::uint32_t multiplicity = 1;
  std::int64_t reserved = 0;  // units per second held back by a join on this route
  bool operator==(const LinkUse&) const = default;
};

// Routes stand in the order of the plan's paths: RouteId i belongs to PathId i.
class RouteTable {
 public:
  // `weight`: how fast a transfer on this route goes for each share it is offered (fair_share.h).
  RouteId add(std::span<const LinkUse> uses, Duration latency, std::int64_t weight = 1) {
    begin_.push_back(static_cast<std::uint32_t>(uses_.size()));
    uses_.insert(uses_.end(), uses.begin(), uses.end());
    latency_.push_back(latency);
    weight_.push_back(weight);
    return RouteId{static_cast<std::uint32_t>(latency_.size() - 1)};
  }
  std::span<const LinkUse> uses(RouteId route) const {
    const std::size_t first = begin_[route.index];
    const std::size_t last = route.index + 1 < begin_.size() ? begin_[route.index + 1] : uses_.size();
    return std::span(uses_).subspan(first, last - first);
  }
  Duration latency(RouteId route) const { return latency_[route.index]; }
  std::int64_t weight(RouteId route) const { return weight_[route.index]; }
  std::size_t size() const { return latency_.size(); }

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<LinkUse> uses_;
  std::vector<Duration> latency_;
  std::vector<std::int64_t> weight_;
};

}  // namespace lockstep
