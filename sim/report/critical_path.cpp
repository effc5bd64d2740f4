#include "sim/report/critical_path.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr const char* unexplained = "idle";

// From which on an op may end after `start`: what a walk back to there can meet.
std::uint32_t first_after(const Run& run, Time start, OpId last) {
  std::uint32_t op = 0;
  while (op < last.index && run.timeline.end[op] <= start) ++op;
  return op;
}

// Back from op `last` to `start`.
class PathWalk {
 public:
  PathWalk(const Run& run, Time start, OpId last)
      : run_(run), first_(first_after(run, start, last)), blocker_(last.index - first_, no_op) {
    const IdVector<LaneId, Lane>& lanes = run.plan.lanes;
    if (std::any_of(lanes.begin(), lanes.end(), decides_while_running))
      leavers_.resize(lanes.size());
    for (std::uint32_t op = first_; op < last.index; ++op) {
      consider(OpId{op}, run.plan.next_in_lane[op]);
      for (std::uint32_t next = run.plan.successor_begin[op]; next < run.plan.successor_begin[op + 1]; ++next)
        consider(OpId{op}, run.plan.successors[next]);
      if (!leavers_.empty() && decides_while_running(lanes[run.plan.lane[op]]))
        leavers_[run.plan.lane[op].index].push_back(OpId{op});
    }
    for (std::uint32_t lane = 0; lane < leavers_.size(); ++lane)
      std::stable_sort(leavers_[lane].begin(), leavers_[lane].end(),
                       [&](OpId a, OpId b) { return left(LaneId{lane}, a) < left(LaneId{lane}, b); });
  }

  // Of the messages of a relay, from the last to the second: each waited for its own lane's message before it
  // or for the feeder's, the one that ended last.
  template <class Visit>
  OpId walk_messages(OpId op, Visit visit) const {
    const Relay* relay = &relay_of(run_.plan, op);
    for (std::uint32_t message = relay->messages - 1; message > 0; --message) {
      visit(relay->op, message_start(*relay, message), message_end(*relay, message));
      relay = later(*relay, relay_of(run_.plan, relay->feeder), message - 1);
    }
    return relay->op;
  }

  // The op that `op` waited for: its end is the start of `op`, or before it where nothing explains the rest.
  OpId before(OpId op) const {
    const OpId depended = op.index < first_ ? no_op : blocker_[op.index - first_];
    if (depended != no_op && end_of(depended) >= start_of(op))
      return depended;
    const OpId leaver = last_to_leave(run_.plan.lane[op.index], op);
    if (depended == no_op || (leaver != no_op && end_of(leaver) > end_of(depended)))
      return leaver;
    return depended;
  }

  // The op of `lane` before op `last` that ends last.
  OpId last_on(LaneId lane) const {
    OpId found = no_op;
    for (std::uint32_t op = first_; op < first_ + blocker_.size(); ++op)
      if (run_.plan.lane[op] == lane && (found == no_op || end_of(OpId{op}) >= end_of(found)))
        found = OpId{op};
    return found;
  }

  bool is_relay(OpId op) const { return run_.plan.kind[op.index] == OpKind::relay; }
  Time start_of(OpId op) const { return run_.timeline.start[op.index]; }
  // A relay's first message, once the others have been walked.
  Time first_end_of(OpId op) const {
    return is_relay(op) ? message_end(relay_of(run_.plan, op), 0) : end_of(op);
  }

 private:
  Time end_of(OpId op) const { return run_.timeline.end[op.index]; }
  Time message_start(const Relay& relay, std::uint32_t message) const {
    return run_.timeline.message_start[relay.place(message)];
  }
  Time message_end(const Relay& relay, std::uint32_t message) const {
    return run_.timeline.message_end[relay.place(message)];
  }
  const Relay* later(const Relay& own, const Relay& feeder, std::uint32_t message) const {
    const Time left = message_end(own, message);
    const Time heard = message_end(feeder, message);
    return heard > left || (heard == left && feeder.op > own.op) ? &feeder : &own;
  }

  static bool decides_while_running(const Lane& lane) {
    return lane.slots > 1 || lane.discipline == Discipline::when_ready;
  }

  // Of all that `op` had to wait for, the one that ended last held it up.
  void consider(OpId before, OpId op) {
    if (op == no_op || op.index >= first_ + blocker_.size())
      return;
    OpId& blocker = blocker_[op.index - first_];
    if (blocker == no_op || end_of(before) >= end_of(blocker))
      blocker = before;
  }

  // By when an op had made room on its lane, as far as its order tells: where there is one slot, some time between
  // its start and its end, for a message leaves its lane before its last byte has arrived; else at its end.
  Time left(LaneId lane, OpId op) const {
    return run_.plan.lanes[lane].slots > 1 ? end_of(op) : start_of(op);
  }

  // A slot is given back and taken in one instant, the giving written first; so no walk goes round.
  bool is_before(OpId a, OpId b) const {
    return start_of(a) < start_of(b) || (start_of(a) == start_of(b) && a.index < b.index);
  }

  // The last that made room before `op` started.
  OpId last_to_leave(LaneId lane, OpId op) const {
    if (leavers_.empty())
      return no_op;
    const std::vector<OpId>& ops = leavers_[lane.index];
    auto after = std::upper_bound(ops.begin(), ops.end(), start_of(op),
                                  [&](Time time, OpId other) { return time < left(lane, other); });
    while (after != ops.begin()) {
      const OpId leaver = *--after;
      if (is_before(leaver, op))
        return leaver;
    }
    return no_op;
  }

  const Run& run_;
  std::uint32_t first_;
  std::vector<OpId> blocker_;  // by op from the first
  // By lane whose order the plan does not tell, by end; empty: it tells that of all.
  std::vector<std::vector<OpId>> leavers_;
};

// Pieces from the last to the first.
class PiecesBackward {
 public:
  PiecesBackward(const Plan& plan, Time start, Time end) : plan_(plan), start_(start), reached_(end) {}

  bool is_complete() const { return reached_ <= start_; }
  void add(OpId op, Time start, Time end) {
    if (end < reached_)
      prepend(unexplained, std::max(end, start_));
    if (start < reached_)
      prepend(plan_.names[section_of(plan_, op).name], std::max(start, start_));
  }
  std::vector<PathItem> take() {
    if (!is_complete())
      prepend(unexplained, start_);
    std::reverse(items_.begin(), items_.end());
    return std::move(items_);
  }

 private:
  void prepend(const std::string& what, Time from) {
    if (reached_ <= from)
      return;
    if (!items_.empty() && items_.back().what == what)
      items_.back().start = from - start_;
    else
      items_.push_back({what, from - start_, reached_ - start_});
    reached_ = from;
  }

  const Plan& plan_;
  Time start_;
  Time reached_;
  std::vector<PathItem> items_;
};

}  // namespace

std::vector<PathItem> find_critical_path(const RankView& critical) {
  const Run& run = critical.run();
  const std::size_t last = critical.iterations();
  const PathWalk walk(run, critical.start_of(last), run.iterations.back().last);
  PiecesBackward pieces(run.plan, critical.start_of(last), critical.end_of(last));
  const auto add = [&](OpId op, Time from, Time to) { pieces.add(op, from, to); };
  for (OpId op = walk.last_on(critical.compute_lane()); op != no_op && !pieces.is_complete();
       op = walk.before(op)) {
    if (walk.is_relay(op))
      op = walk.walk_messages(op, add);
    add(op, walk.start_of(op), walk.first_end_of(op));
  }
  return pieces.take();
}

}  // namespace lockstep
