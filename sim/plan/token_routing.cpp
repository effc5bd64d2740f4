#include "sim/plan/token_routing.h"

#include <algorithm>

namespace lockstep {
namespace {

// That none of `wanted` among `all` is drawn when `drawn` are.
double chance_of_none(std::int64_t all, std::int64_t wanted, std::int64_t drawn) {
  double chance = 1;
  for (std::int64_t i = 0; i < drawn; ++i)
    chance *= static_cast<double>(std::max<std::int64_t>(all - wanted - i, 0)) / static_cast<double>(all - i);
  return chance;
}

double ways_to_choose(std::int64_t chosen, std::int64_t all) {
  if (chosen < 0 || chosen > all)
    return 0;
  double ways = 1;
  for (std::int64_t i = 0; i < chosen; ++i) ways *= static_cast<double>(all - i) / static_cast<double>(i + 1);
  return ways;
}

}  // namespace

double visited_share(const TokenRouting& routing, std::int64_t parts) {
  const std::int64_t groups = routing.groups;
  const std::int64_t drawn = routing.groups_per_token;
  const std::int64_t reachable = routing.experts / groups * drawn;
  const auto visited_of = [&](std::int64_t experts) {
    return 1 - chance_of_none(reachable, experts, routing.per_token);
  };
  if (parts >= groups)
    return static_cast<double>(drawn) / static_cast<double>(groups) * visited_of(routing.experts / parts);
  const std::int64_t inside = groups / parts;
  double share = 0;
  for (std::int64_t hit = 1; hit <= std::min(inside, drawn); ++hit)
    share += ways_to_choose(hit, inside) * ways_to_choose(drawn - hit, groups - inside) /
             ways_to_choose(drawn, groups) * visited_of(routing.experts / groups * hit);
  return share;
}

}  // namespace lockstep
