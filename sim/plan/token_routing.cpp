#include "sim/plan/token_routing.h"

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

// Chances are in parts of this; times as many experts as there can be they stay whole numbers.
constexpr std::int64_t certain = 1'000'000'000'000;

// That none of `wanted` among `all` is drawn when `drawn` are.
std::int64_t chance_of_none(std::int64_t all, std::int64_t wanted, std::int64_t drawn) {
  std::int64_t chance = certain;
  for (std::int64_t i = 0; i < drawn; ++i)
    chance = chance * std::max<std::int64_t>(all - wanted - i, 0) / (all - i);
  return chance;
}

// By number of them: that so many of `wanted` among `all` are drawn when `drawn` are.
std::vector<std::int64_t> chances_of_hits(std::int64_t all, std::int64_t wanted, std::int64_t drawn) {
  std::vector<std::int64_t> chances(static_cast<std::size_t>(std::min(wanted, drawn)) + 1);
  chances[0] = certain;
  for (std::int64_t draw = 0; draw < drawn; ++draw)
    for (std::size_t hits = chances.size(); hits-- > 0;) {
      const std::int64_t left = wanted - static_cast<std::int64_t>(hits);
      const std::int64_t hit = chances[hits] * left / (all - draw);
      if (hits + 1 < chances.size())
        chances[hits + 1] += hit;
      chances[hits] -= hit;
    }
  return chances;
}

// Of two chances, to a billionth.
std::int64_t product(std::int64_t one, std::int64_t other) {
  constexpr std::int64_t kept = 1'000'000'000;
  constexpr std::int64_t dropped = certain / kept;
  return (one / dropped) * (other / dropped) / (kept / dropped);
}

Ratio rounded(std::int64_t chance) {
  constexpr std::int64_t of_a_millionth = certain / 1'000'000;
  return Ratio::parts_per_million((chance + of_a_millionth / 2) / of_a_millionth);
}

}  // namespace

Ratio visited_share(const TokenRouting& routing, std::int64_t parts) {
  const std::int64_t groups = routing.groups;
  const std::int64_t drawn = routing.groups_per_token;
  const std::int64_t in_group = routing.experts / groups;
  const auto visited = [&](std::int64_t experts) {
    return certain - chance_of_none(in_group * drawn, experts, routing.per_token);
  };
  if (parts >= groups)
    return rounded(visited(routing.experts / parts) / groups * drawn);
  const std::vector<std::int64_t> hits = chances_of_hits(groups, groups / parts, drawn);
  std::int64_t share = 0;
  for (std::size_t hit = 1; hit < hits.size(); ++hit)
    share += product(hits[hit], visited(in_group * static_cast<std::int64_t>(hit)));
  return rounded(share);
}

}  // namespace lockstep
