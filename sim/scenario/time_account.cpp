#include "sim/scenario/time_account.h"

#include <algorithm>
#include <optional>

namespace lockstep {
namespace {

constexpr std::uint32_t no_representative = 0xffffffff;

Duration overlap(Time from, Time to, Time begin, Time end) {
  const Time first = std::max(from, begin);
  const Time last = std::min(to, end);
  return last > first ? last - first : Duration::zero();
}

// When the last member has begun: of those that end at `end`, where that is given.
Time latest_begin(const Timeline& timeline, const CollectiveOps& collective, std::optional<Time> end) {
  Time latest;
  for (std::size_t i = 0; i < collective.begin.size(); ++i)
    if (!end || timeline.end[collective.end[i].index] == *end)
      latest = std::max(latest, timeline.end[collective.begin[i].index]);
  return latest;
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
                                             std::vector<Time>& ends) {
  list_presences(timeline, ops);
  std::vector<TimeAccount> accounts(lanes_.compute.size());
  for (std::uint32_t op = ops.first.index; op < ops.last.index; ++op) {
    const std::uint32_t i = representative_of_[plan_.lane[op].index];
    if (i == no_representative)
      continue;
    if (timeline.start[op] > ends[i])
      charge_idle(i, ends[i], timeline.start[op], OpId{op}, accounts[i]);
    const Time from = std::max(timeline.start[op], ends[i]);
    if (timeline.end[op] > from)
      charge_busy(OpId{op}, timeline.end[op] - from, accounts[i]);
    ends[i] = std::max(ends[i], timeline.end[op]);
  }
  for (std::size_t i = 0; i < accounts.size(); ++i) charge_communication(i, ends[i], accounts[i]);
  return accounts;
}

void TimeKeeper::list_presences(const Timeline& timeline, const IterationOps& ops) {
  for (auto& presences : presences_) presences.clear();
  std::fill(next_presence_.begin(), next_presence_.end(), 0);
  for (const Communication& communication : ops.communications) {
    const CollectiveOps& collective = communication.collective;
    // In groups, the members of each end together.
    const bool is_of_all = collective.begin.empty() ||
                           plan_.lane[collective.begin.front().index] == lanes_.communication.front();
    Time end;
    Time latest;
    for (std::size_t i = 0; i < collective.begin.size(); ++i) {
      const Time own_end = timeline.end[collective.end[i].index];
      if (i == 0 || (!is_of_all && own_end != end))
        latest = latest_begin(timeline, collective, is_of_all ? std::nullopt : std::optional(own_end));
      end = own_end;
      presences_[i].push_back({timeline.end[collective.begin[i].index], std::min(latest, end), end});
    }
  }
  for (auto& presences : presences_)
    std::stable_sort(presences.begin(), presences.end(),
                     [](const Presence& a, const Presence& b) { return a.begin < b.begin; });
}

Category TimeKeeper::waits_for(OpId op) const {
  const Category category = category_of_[op.index];
  const bool is_named = category == Category::input_stall || category == Category::pipeline_bubble ||
                        category == Category::checkpoint || category == Category::host_overhead;
  return plan_.kind[op.index] == OpKind::join && is_named ? category : Category::communication;
}

void TimeKeeper::charge_idle(std::size_t representative, Time from, Time to, OpId until,
                             TimeAccount& account) {
  const std::vector<Presence>& presences = presences_[representative];
  std::size_t& next = next_presence_[representative];
  while (next < presences.size() && presences[next].end <= from) ++next;
  Duration for_stragglers;
  Duration communicating;
  Time counted = from;  // collectives in flight at once count once
  Time counted_late = from;
  for (std::size_t i = next; i < presences.size() && presences[i].begin < to; ++i) {
    for_stragglers += overlap(counted_late, to, presences[i].begin, presences[i].all_there);
    communicating += overlap(counted, to, presences[i].begin, presences[i].end);
    counted_late = std::max(counted_late, presences[i].all_there);
    counted = std::max(counted, presences[i].end);
  }
  account.straggler_wait += for_stragglers;
  account.of(waits_for(until)) += to - from - for_stragglers;
  account.overlapped -= communicating;
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
