#include "sim/plan/coarse_plan.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "sim/plan/op_groups.h"

namespace lockstep {
namespace {

constexpr std::uint32_t unnumbered = 0xffffffff;

// Writes an op for each group that has not gone, in order.
class CoarseWriter {
 public:
  CoarseWriter(const Plan& plan, const OpGroups& groups)
      : plan_(plan), groups_(groups.groups), of_op_(groups.of_op), number_(groups_.size(), unnumbered) {}

  CoarsePlan write(std::span<const OpId> boundaries) {
    coarse_.plan.lanes = plan_.lanes;
    coarse_.plan.paths = plan_.paths;
    coarse_.plan.traffics = plan_.traffics;
    coarse_.plan.names = plan_.names;
    for (std::uint32_t group = 0; group < groups_.size(); ++group)
      if (!groups_[group].is_gone)
        number_[group] = write_op(groups_[group]);
    coarse_.part_begin.push_back(static_cast<std::uint32_t>(coarse_.parts.size()));
    write_lanes();
    write_successors();
    write_relays();
    write_ends();
    for (const OpId boundary : boundaries) coarse_.boundaries.push_back(first_from(boundary));
    return std::move(coarse_);
  }

 private:
  std::uint32_t write_op(const OpGroup& group) {
    Plan& plan = coarse_.plan;
    const std::uint32_t first = group.parts.front();
    const auto op = static_cast<std::uint32_t>(plan.size());
    std::int64_t amount = 0;
    for (const std::uint32_t part : group.parts) amount = arithmetic::checked_sum(amount, plan_.amount[part]);
    plan.kind.push_back(plan_.kind[first]);
    plan.lane.push_back(plan_.lane[first]);
    plan.amount.push_back(amount);
    plan.path.push_back(path_of(group, amount));
    if (!plan_.priority.empty())
      plan.priority.push_back(plan_.priority[first]);
    write_section(OpId{op}, section_of(plan_, OpId{first}));
    coarse_.part_begin.push_back(static_cast<std::uint32_t>(coarse_.parts.size()));
    if (is_kernel(plan_, OpId{first}))
      for (const std::uint32_t part : group.parts) coarse_.parts.push_back(OpId{part});
    return op;
  }

  // Of merged kernels, that of the one bound most as all of them are.
  PathId path_of(const OpGroup& group, std::int64_t amount) const {
    const PathId first = plan_.path[group.parts.front()];
    if (group.parts.size() == 1 || amount == 0)
      return first;
    constexpr std::int64_t fine = 1'000'000;  // of a part that a bound counts
    const auto part_of_whole = [&](auto part_of) {
      Unsigned128 sum = 0;
      for (const std::uint32_t part : group.parts)
        sum += static_cast<Unsigned128>(plan_.amount[part]) * part_of(bound_of(part));
      return static_cast<std::int64_t>(sum * fine / static_cast<Unsigned128>(amount));
    };
    const std::int64_t multiplying =
        part_of_whole([](const KernelBound& bound) { return bound.multiplying; });
    const std::int64_t moving = part_of_whole([](const KernelBound& bound) { return bound.moving; });
    const auto distance = [&](std::uint32_t part) {
      const KernelBound& bound = bound_of(part);
      return std::abs(bound.multiplying * fine - multiplying) + std::abs(bound.moving * fine - moving);
    };
    const auto nearest =
        std::min_element(group.parts.begin(), group.parts.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return distance(a) < distance(b); });
    return plan_.path[*nearest];
  }
  const KernelBound& bound_of(std::uint32_t op) const { return plan_.paths[plan_.path[op]].bound; }

  void write_section(OpId op, const Section& section) {
    std::vector<Section>& sections = coarse_.plan.sections;
    if (sections.empty() || sections.back().name != section.name ||
        sections.back().category != section.category)
      sections.push_back({op, section.name, section.category});
  }

  void write_lanes() {
    Plan& plan = coarse_.plan;
    plan.next_in_lane.assign(plan.size(), no_op);
    plan.dependency_count.assign(plan.size(), 0);
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      if (groups_[group].is_gone)
        continue;
      const std::uint32_t op = number_[group];
      if (groups_[group].lane_next != no_group)
        plan.next_in_lane[op] = OpId{number_[groups_[group].lane_next]};
      plan.dependency_count[op] = static_cast<std::uint32_t>(groups_[group].predecessors.size()) +
                                  (groups_[group].follows_lane ? 1 : 0);
    }
  }

  void write_successors() {
    Plan& plan = coarse_.plan;
    plan.successor_begin.assign(plan.size() + 1, 0);
    for (const OpGroup& group : groups_)
      for (std::size_t i = 0; !group.is_gone && i < group.predecessors.size(); ++i)
        ++plan.successor_begin[number_[group.predecessors[i]] + 1];
    for (std::size_t op = 0; op < plan.size(); ++op) plan.successor_begin[op + 1] += plan.successor_begin[op];
    plan.successors.resize(plan.successor_begin.back());
    std::vector<std::uint32_t> next(plan.successor_begin.begin(), plan.successor_begin.end() - 1);
    for (std::uint32_t group = 0; group < groups_.size(); ++group)
      if (!groups_[group].is_gone)
        for (const std::uint32_t on : groups_[group].predecessors)
          plan.successors[next[number_[on]]++] = OpId{number_[group]};
  }

  // Nothing is merged with a relay.
  void write_relays() {
    const auto moved = [&](OpId op) { return OpId{number_[of_op_[op.index]]}; };
    coarse_.plan.relays = plan_.relays;
    coarse_.plan.message_count = plan_.message_count;
    for (Relay& relay : coarse_.plan.relays) {
      relay.op = moved(relay.op);
      relay.feeder = moved(relay.feeder);
    }
  }

  // Of merged kernels only the last ends when their op does.
  void write_ends() {
    for (const std::uint32_t group : of_op_)
      coarse_.op_of.push_back(group == no_group || number_[group] == unnumbered ? no_op
                                                                                : OpId{number_[group]});
    for (const OpGroup& group : groups_)
      for (std::size_t part = 0; part + 1 < group.parts.size(); ++part)
        coarse_.op_of[group.parts[part]] = no_op;
  }

  // Groups stand in the order of their first ops.
  OpId first_from(OpId boundary) const {
    const auto stands_before = [](const OpGroup& group, std::uint32_t op) {
      return group.parts.front() < op;
    };
    auto group = std::lower_bound(groups_.begin(), groups_.end(), boundary.index, stands_before);
    while (group != groups_.end() && group->is_gone) ++group;
    return OpId{group == groups_.end() ? static_cast<std::uint32_t>(coarse_.plan.size())
                                       : number_[static_cast<std::size_t>(group - groups_.begin())]};
  }

  const Plan& plan_;
  const std::vector<OpGroup>& groups_;
  const std::vector<std::uint32_t>& of_op_;
  std::vector<std::uint32_t> number_;  // by group: its op
  CoarsePlan coarse_;
};

}  // namespace

CoarsePlan coarsen(const Plan& plan, std::span<const OpId> boundaries) {
  OpGroups groups = group_ops(plan, boundaries);
  share_launches(plan, groups);
  return CoarseWriter(plan, groups).write(boundaries);
}

}  // namespace lockstep
