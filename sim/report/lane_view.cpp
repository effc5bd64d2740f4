#include "sim/report/lane_view.h"

#include <algorithm>

namespace lockstep {

std::vector<Stretch> busy_stretches(const Plan& plan, const Timeline& timeline, LaneId lane, OpId first,
                                    OpId last) {
  std::vector<Stretch> stretches;
  for (std::uint32_t op = first.index; op < last.index; ++op)
    if (plan.lane[op] == lane && timeline.end[op] > timeline.start[op])
      stretches.push_back({timeline.start[op], timeline.end[op], OpId{op}});
  return stretches;
}

std::vector<Stretch> held_stretches(const Plan& plan, const Timeline& timeline, LaneId lane, OpId first,
                                    OpId last) {
  // +1 where a collective takes the lane, -1 where it returns it; takes first at one instant.
  std::vector<std::pair<Time, std::int64_t>> changes;
  for (std::uint32_t op = first.index; op < last.index; ++op)
    if (plan.lane[op] == lane && plan.kind[op] == OpKind::join && plan.amount[op] != 0)
      changes.emplace_back(timeline.end[op], -plan.amount[op]);
  std::sort(changes.begin(), changes.end());
  std::vector<Stretch> stretches;
  std::int64_t active = 0;
  for (const auto& [time, change] : changes) {
    if (active == 0 && change < 0)
      stretches.push_back({time, time, no_op});
    active -= change;
    stretches.back().end = time;
  }
  return stretches;
}

// Nothing on a compute lane ends after what follows it there.
Time lane_end(const Plan& plan, const Timeline& timeline, LaneId lane, OpId first, OpId last) {
  const bool is_in_order = plan.lanes[lane].kind == LaneKind::compute && plan.lanes[lane].slots == 1 &&
                           plan.lanes[lane].discipline == Discipline::in_order;
  Time end;
  for (std::uint32_t op = last.index; op-- > first.index;)
    if (plan.lane[op] == lane) {
      end = std::max(end, timeline.end[op]);
      if (is_in_order)
        break;
    }
  return end;
}

std::vector<Stretch> united(std::vector<Stretch> a, const std::vector<Stretch>& b) {
  if (a.empty())
    return b;
  a.insert(a.end(), b.begin(), b.end());
  std::stable_sort(a.begin(), a.end(), [](const Stretch& x, const Stretch& y) { return x.start < y.start; });
  std::vector<Stretch> result;
  for (const Stretch& stretch : a)
    if (result.empty() || stretch.start > result.back().end)
      result.push_back(stretch);
    else
      result.back().end = std::max(result.back().end, stretch.end);
  return result;
}

Duration total(const std::vector<Stretch>& stretches) {
  Duration sum;
  for (const Stretch& stretch : stretches) sum += stretch.end - stretch.start;
  return sum;
}

Duration common(const std::vector<Stretch>& a, const std::vector<Stretch>& b) {
  if (a.empty())
    return {};
  Duration sum;
  const auto ends_before = [&](const Stretch& stretch) { return stretch.end <= a.front().start; };
  auto other = std::partition_point(b.begin(), b.end(), ends_before);
  for (const Stretch& stretch : a) {
    while (other != b.end() && other->end <= stretch.start) ++other;
    for (auto next = other; next != b.end() && next->start < stretch.end; ++next)
      sum += std::min(stretch.end, next->end) - std::max(stretch.start, next->start);
  }
  return sum;
}

}  // namespace lockstep
