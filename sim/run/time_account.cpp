#include "sim/run/time_account.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::uint32_t no_representative = 0xffffffff;

Duration overlap(Time from, Time to, Time begin, Time end) {
  const Time first = std::max(from, begin);
  const Time last = std::min(to, end);
  return last > first ? last - first : Duration::zero();
}

// When the last member of each group has begun.
void find_latest_begins(const Timeline& timeline, const Communication& communication,
                        std::vector<Time>& latest) {
  latest.clear();
  for (const Participation& part : communication.taking_part) {
    if (part.begin == no_op)
      continue;
    latest.resize(std::max<std::size_t>(latest.size(), part.group + 1));
    latest[part.group] = std::max(latest[part.group], timeline.end[part.begin.index]);
  }
}

}  // namespace

Duration TimeAccount::total() const {
  Duration sum = straggler_wait;
  for (const Duration part : by_category) sum += part;
  return sum;
}

TimeAccount& TimeAccount::operator+=(const TimeAccount& other) {
  for (std::size_t category = 0; category < category_count; ++category)
    by_category[category] += other.by_category[category];
  straggler_wait += other.straggler_wait;
  communicating += other.communicating;
  overlapped += other.overlapped;
  return *this;
}

TimeKeeper::TimeKeeper(const Plan& plan, const RankLanes& lanes, const Charges* charges)
    : plan_(plan),
      lanes_(lanes),
      charges_(charges),
      representative_of_(plan.lanes.size(), no_representative),
      category_of_(plan.size(), Category::other),
      presences_(lanes.compute.size()),
      next_presence_(lanes.compute.size()) {
  for (std::uint32_t i = 0; i < lanes.compute.size(); ++i) representative_of_[lanes.compute[i].index] = i;
  for (std::size_t section = 0; section < plan.sections.size(); ++section) {
    const bool is_last = section + 1 == plan.sections.size();
    const std::size_t end = is_last ? plan.size() : plan.sections[section + 1].first.index;
    for (std::size_t op = plan.sections[section].first.index; op < end; ++op)
      category_of_[op] = plan.sections[section].category;
  }
}

std::vector<TimeAccount> TimeKeeper::account(const Timeline& timeline, const IterationOps& ops,
                                             std::vector<Time>& ends, std::vector<TimeSpan>* spans) {
  spans_ = spans;
  list_presences(timeline, ops);
  std::vector<TimeAccount> accounts(lanes_.compute.size());
  for (std::uint32_t op = ops.first.index; op < ops.last.index; ++op) {
    const std::uint32_t i = representative_of_[plan_.lane[op].index];
    if (i == no_representative)
      continue;
    if (timeline.start[op] > ends[i])
      charge_idle({i, ends[i], timeline.start[op], OpId{op}}, accounts[i]);
    const Time from = std::max(timeline.start[op], ends[i]);
    if (timeline.end[op] > from) {
      charge_busy(OpId{op}, timeline.end[op] - from, accounts[i]);
      record({i, from, timeline.end[op], OpId{op}, category_of_[op], false});
    }
    ends[i] = std::max(ends[i], timeline.end[op]);
  }
  for (std::size_t i = 0; i < accounts.size(); ++i) charge_communication(i, ends[i], accounts[i]);
  return accounts;
}

void TimeKeeper::list_presences(const Timeline& timeline, const IterationOps& ops) {
  for (auto& presences : presences_) presences.clear();
  std::fill(next_presence_.begin(), next_presence_.end(), 0);
  std::vector<Time> latest;
  for (const Communication& communication : ops.communications) {
    find_latest_begins(timeline, communication, latest);
    for (std::size_t i = communication.first; i < communication.last(); ++i) {
      const Participation& part = communication.of(i);
      if (part.begin == no_op)
        continue;
      const Time end = timeline.end[part.end.index];
      presences_[i].push_back({.begin = timeline.end[part.begin.index],
                               .all_there = std::min(latest[part.group], end),
                               .end = end,
                               .is_received = communication.comes_to(i)});
    }
  }
  const auto is_before = [](const Presence& a, const Presence& b) { return a.begin < b.begin; };
  for (auto& presences : presences_)
    if (!std::is_sorted(presences.begin(), presences.end(), is_before))
      std::stable_sort(presences.begin(), presences.end(), is_before);
}

Category TimeKeeper::waits_for(OpId op) const {
  const Category category = category_of_[op.index];
  const bool is_named = category == Category::input_stall || category == Category::pipeline_bubble ||
                        category == Category::checkpoint || category == Category::host_overhead;
  return plan_.kind[op.index] == OpKind::join && is_named ? category : Category::communication;
}

void TimeKeeper::charge_idle(const Idle& idle, TimeAccount& account) {
  const std::vector<Presence>& presences = presences_[idle.representative];
  std::size_t& next = next_presence_[idle.representative];
  while (next < presences.size() && presences[next].end <= idle.from) ++next;
  Time counted = idle.from;  // collectives in flight at once count once
  Time counted_late = idle.from;
  for (std::size_t i = next; i < presences.size() && presences[i].begin < idle.to; ++i) {
    const Time late_from = std::max(counted_late, presences[i].begin);
    const Time late_to = std::min(idle.to, presences[i].all_there);
    if (late_to > late_from) {
      charge_wait(idle, counted_late, late_from, account);
      charge_straggler(idle, late_from, late_to, account);
      counted_late = late_to;
    }
    account.overlapped -= overlap(counted, idle.to, presences[i].begin, presences[i].end);
    counted = std::max(counted, presences[i].end);
  }
  charge_wait(idle, counted_late, idle.to, account);
}

// Who waits for another stage waits for no straggler, whatever else is under way.
void TimeKeeper::charge_straggler(const Idle& idle, Time from, Time to, TimeAccount& account) {
  if (waits_for(idle.until) == Category::pipeline_bubble)
    return charge_bubble(idle, from, to, account);
  account.straggler_wait += to - from;
  record({idle.representative, from, to, idle.until, Category::communication, true});
}

void TimeKeeper::charge_wait(const Idle& idle, Time from, Time to, TimeAccount& account) {
  const Category category = waits_for(idle.until);
  if (category == Category::pipeline_bubble)
    return charge_bubble(idle, from, to, account);
  charge_to(category, idle, from, to, account);
}

// What is left of a bubble while the message that ends it is under way.
void TimeKeeper::charge_bubble(const Idle& idle, Time from, Time to, TimeAccount& account) {
  const std::vector<Presence>& presences = presences_[idle.representative];
  Time reached = from;
  for (std::size_t i = next_presence_[idle.representative]; i < presences.size() && presences[i].begin < to;
       ++i) {
    const Time begin = std::max(reached, presences[i].begin);
    const Time end = std::min(to, presences[i].end);
    if (!presences[i].is_received || end <= begin)
      continue;
    charge_to(Category::pipeline_bubble, idle, reached, begin, account);
    charge_to(Category::communication, idle, begin, end, account);
    reached = end;
  }
  charge_to(Category::pipeline_bubble, idle, reached, to, account);
}

void TimeKeeper::charge_to(Category category, const Idle& idle, Time from, Time to, TimeAccount& account) {
  if (to <= from)
    return;
  account.of(category) += to - from;
  record({idle.representative, from, to, idle.until, category, false});
}

void TimeKeeper::record(const TimeSpan& span) {
  if (spans_ != nullptr)
    spans_->push_back(span);
}

// Until the iteration ends, the compute lane is busy wherever it does not stand still.
void TimeKeeper::charge_communication(std::size_t representative, Time end, TimeAccount& account) const {
  Time counted;
  for (const Presence& presence : presences_[representative]) {
    const Time begin = std::max(presence.begin, counted);
    account.communicating += overlap(begin, presence.end, begin, presence.end);
    account.overlapped += overlap(begin, presence.end, begin, end);
    counted = std::max(counted, presence.end);
  }
}

void TimeKeeper::charge_busy(OpId op, Duration time, TimeAccount& account) const {
  const std::span<const Charge> parts = charges_ ? charges_->of(op) : std::span<const Charge>{};
  if (parts.size() < 2 || parts.back().until == 0) {
    account.of(parts.empty() ? category_of_[op.index] : parts.back().category) += time;
    return;
  }
  Duration charged;
  for (const Charge& part : parts) {
    const Duration reached = scaled(time, part.until, parts.back().until);
    account.of(part.category) += reached - charged;
    charged = reached;
  }
}

}  // namespace lockstep
