#include "sim/report/imbalance.h"

#include <algorithm>

#include "sim/report/lane_view.h"
#include "sim/report/memory_track.h"

namespace lockstep {
namespace {

// In a mean iteration after the warm-up.
Duration mean_busy(const Run& run, std::size_t rank) {
  const auto measured = static_cast<std::int64_t>(run.iterations.size()) - 1;
  const OpId first = run.iterations[1].first;
  const OpId last = run.iterations.back().last;
  const Duration busy = total(busy_stretches(run.plan, run.timeline, run.lanes.compute[rank], first, last));
  return Duration::picoseconds(busy.picoseconds() / measured);
}

Bytes most_held(const Run& run, const MemoryUse& standing, std::size_t rank) {
  Bytes most;
  for (const MemoryMoment& moment : track_memory(run, standing, rank))
    most = std::max(most, moment.use.total());
  return most;
}

}  // namespace

std::optional<Imbalance> find_imbalance(const Scenario& scenario, const Simulation& simulation) {
  const Run& run = simulation.steady;
  const std::size_t ranks = run.lanes.compute.size();
  if (!strategy_named(scenario.training.strategy).has_leader || ranks < 2)
    return std::nullopt;
  const std::vector<MemoryUse> standing = standing_memory(scenario, simulation);
  Imbalance found{.busy = mean_busy(run, 0),
                  .others_busy = {},
                  .memory = most_held(run, standing[0], 0),
                  .others_memory = {}};
  Duration others;
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    others += mean_busy(run, rank);
    found.others_memory = std::max(found.others_memory, most_held(run, standing[rank], rank));
  }
  found.others_busy = Duration::picoseconds(others.picoseconds() / static_cast<std::int64_t>(ranks - 1));
  return found;
}

}  // namespace lockstep
