#include "sim/report/iteration_times.h"

#include <algorithm>
#include <vector>

namespace lockstep {

IterationTimes spread_of(const RankView& view) {
  std::vector<Duration> lengths;
  for (std::size_t iteration = 1; iteration <= view.iterations(); ++iteration)
    lengths.push_back(view.length(iteration));
  std::sort(lengths.begin(), lengths.end());
  const auto quantile = [&](std::size_t percent) { return lengths[(lengths.size() - 1) * percent / 100]; };
  return {.first = {},
          .low = {},
          .high = {},
          .p5 = quantile(5),
          .p50 = quantile(50),
          .p95 = quantile(95),
          .p99 = quantile(99),
          .longest = lengths.back()};
}

IterationTimes spread_of(const LongRun& run) {
  const auto quantile = [&](Ratio part) { return Duration::picoseconds(run.lengths.quantile(part)); };
  return {.first = {},
          .low = {},
          .high = {},
          .p5 = quantile(Ratio::percent(5)),
          .p50 = quantile(Ratio::percent(50)),
          .p95 = quantile(Ratio::percent(95)),
          .p99 = quantile(Ratio::percent(99)),
          .longest = Duration::picoseconds(run.lengths.maximum())};
}

Duration mean_iteration(const RankView& view) {
  const Duration whole = view.end_of(view.iterations()) - view.end_of(0);
  return Duration::picoseconds(whole.picoseconds() / static_cast<std::int64_t>(view.iterations()));
}

Duration mean_iteration(const LongRun& run) {
  return Duration::picoseconds(run.accounts[run.critical].total().picoseconds() / run.iterations);
}

}  // namespace lockstep
