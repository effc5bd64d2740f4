#include "sim/report/rank_view.h"

#include <utility>

#include "sim/report/server_traffic.h"

namespace lockstep {

RankView::RankView(const Run& run, std::size_t representative) : run_(run), representative_(representative) {
  for (const IterationOps& iteration : run.iterations)
    ends_.push_back(lane_end(run.plan, run.timeline, compute_lane(), iteration.first, iteration.last));
}

std::vector<Stretch> RankView::busy(std::size_t iteration) const {
  const IterationOps& ops = run_.iterations[iteration];
  return busy_stretches(run_.plan, run_.timeline, compute_lane(), ops.first, ops.last);
}

std::vector<Stretch> RankView::communicating(std::size_t iteration) const {
  std::vector<Stretch> messages =
      message_stretches(run_, iteration, representative_, {start_of(iteration), end_of(iteration), no_op});
  if (!messages.empty())
    return messages;
  const IterationOps& ops = run_.iterations[iteration];
  const auto held = [&](LaneId lane) {
    return held_stretches(run_.plan, run_.timeline, lane, ops.first, ops.last);
  };
  std::vector<Stretch> all = held(run_.lanes.communication[representative_]);
  for (const std::vector<LaneId>& group : run_.lanes.of_groups)
    all = united(std::move(all), held(group[representative_]));
  return all;
}

std::size_t critical_representative(const Run& run) {
  std::size_t critical = 0;
  Time latest;
  const IterationOps& last = run.iterations.back();
  for (std::size_t index = 0; index < run.lanes.compute.size(); ++index) {
    const Time end = lane_end(run.plan, run.timeline, run.lanes.compute[index], last.first, last.last);
    if (end > latest) {
      latest = end;
      critical = index;
    }
  }
  return critical;
}

CollectiveSpan span_of(const Run& run, const Communication& communication, std::size_t representative) {
  const auto end_of = [&](OpId op) { return run.timeline.end[op.index]; };
  const Participation& part = communication.of(representative);
  const bool is_sent = part.ready != no_op;  // else it comes from another stage
  return {.ready = end_of(is_sent ? part.ready : part.begin),
          .start = end_of(part.begin),
          .end = end_of(part.end)};
}

}  // namespace lockstep
