#include "sim/report/run_account.h"

namespace lockstep {

RunAccount account_of(const Run& run, std::size_t first_kept) {
  const std::size_t ranks = run.lanes.compute.size();
  RunAccount account{.totals = std::vector<TimeAccount>(ranks),
                     .spans = std::vector<std::vector<TimeSpan>>(ranks)};
  TimeKeeper keeper(run.plan, run.lanes);
  std::vector<Time> ends(ranks);
  std::vector<TimeSpan> spans;
  for (std::size_t iteration = 0; iteration < run.iterations.size(); ++iteration) {
    spans.clear();
    const std::vector<TimeAccount> found = keeper.account(run.timeline, run.iterations[iteration], ends,
                                                          iteration < first_kept ? nullptr : &spans);
    for (const TimeSpan& span : spans) account.spans[span.representative].push_back(span);
    for (std::size_t i = 0; iteration > 0 && i < ranks; ++i) account.totals[i] += found[i];
  }
  return account;
}

}  // namespace lockstep
