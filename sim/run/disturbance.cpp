#include "sim/run/disturbance.h"

#include <optional>
#include <utility>

#include "sim/base/random.h"

namespace lockstep {
namespace {

// A fraction of stragglers is drawn rank by rank, keyed by the seed, so that the draw depends on nothing
// else.
bool is_straggler(const Straggler& straggler, std::int64_t rank, std::int64_t seed) {
  if (straggler.probability)
    return false;  // one that passes
  if (straggler.rank)
    return *straggler.rank == rank;
  const std::uint64_t draw =
      keyed_random(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(rank), 0);
  constexpr auto parts_of_one = static_cast<std::uint64_t>(Ratio::one().parts_per_million());
  return Ratio::parts_per_million(static_cast<std::int64_t>(draw % parts_of_one)) < straggler.fraction;
}

}  // namespace

std::vector<Ratio> slowdown_by_rank(const Scenario& scenario) {
  std::vector<Ratio> slowdown(static_cast<std::size_t>(scenario.cluster.ranks()), Ratio::one());
  for (const Straggler& straggler : scenario.cluster.stragglers)
    for (std::int64_t rank = 0; rank < scenario.cluster.ranks(); ++rank)
      if (is_straggler(straggler, rank, scenario.simulation.seed))
        slowdown[static_cast<std::size_t>(rank)] = straggler.slowdown;
  return slowdown;
}

std::vector<Ratio> slowdown_by_nic(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  if (cluster.slow_links.empty())
    return {};
  const auto nics = static_cast<std::int64_t>(cluster.machine.nics.size());
  std::vector<Ratio> slowdown(static_cast<std::size_t>(cluster.nodes * nics), Ratio::one());
  for (const SlowLink& slow : cluster.slow_links)
    for (std::int64_t nic = 0; nic < nics; ++nic)
      if (slow.nic.value_or(nic) == nic)
        slowdown[static_cast<std::size_t>(slow.node * nics + nic)] = slow.slowdown;
  return slowdown;
}

Jitter jitter_of(const Scenario& scenario) {
  std::vector<PassingStraggler> passing;
  for (const Straggler& straggler : scenario.cluster.stragglers)
    if (straggler.probability)
      passing.push_back({*straggler.probability, straggler.slowdown});
  return {scenario.cluster.jitter, std::move(passing), scenario.simulation.seed};
}

}  // namespace lockstep
