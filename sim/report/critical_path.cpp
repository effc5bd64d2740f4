#include "sim/report/critical_path.h"

#include <algorithm>

namespace lockstep {
namespace {

class PathWalk {
 public:
  PathWalk(const Run& run, const IterationOps& iteration) : run_(run), first_(iteration.first.index) {
    const std::uint32_t last = iteration.last.index;
    blocker_.assign(last - first_, no_op);
    for (std::uint32_t op = first_; op < last; ++op) {
      consider(OpId{op}, run.plan.next_in_lane[op]);
      for (std::uint32_t next = run.plan.successor_begin[op]; next < run.plan.successor_begin[op + 1]; ++next)
        consider(OpId{op}, run.plan.successors[next]);
    }
    end_ = OpId{first_};
    for (std::uint32_t op = first_; op < last; ++op)
      if (run.timeline.end[op] >= run.timeline.end[end_.index])
        end_ = OpId{op};
  }

  std::vector<OpId> walk() const {
    std::vector<OpId> path;
    for (OpId op = end_; op != no_op; op = blocker_[op.index - first_]) path.push_back(op);
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  // Of all that `op` had to wait for, the one that ended last held it up.
  void consider(OpId before, OpId op) {
    if (op == no_op || op.index - first_ >= blocker_.size())
      return;
    OpId& blocker = blocker_[op.index - first_];
    if (blocker == no_op || run_.timeline.end[before.index] >= run_.timeline.end[blocker.index])
      blocker = before;
  }

  const Run& run_;
  std::uint32_t first_;
  std::vector<OpId> blocker_;
  OpId end_;
};

}  // namespace

std::vector<PathItem> find_critical_path(const Run& run, const IterationOps& iteration,
                                         Time iteration_start) {
  std::vector<PathItem> items;
  const auto since = [&](Time time) { return std::max(time, iteration_start) - iteration_start; };
  for (const OpId op : PathWalk(run, iteration).walk()) {
    const std::string& name = run.plan.names[section_of(run.plan, op).name];
    const Duration start = since(run.timeline.start[op.index]);
    const Duration end = since(run.timeline.end[op.index]);
    if (end == start)
      continue;
    if (!items.empty() && items.back().what == name)
      items.back().end = end;
    else
      items.push_back({name, start, end});
  }
  return items;
}

}  // namespace lockstep
