#include "sim/plan/coarse_plan.h"

#include <algorithm>

#include "sim/base/check.h"

namespace lockstep {
namespace {

constexpr std::uint32_t none = 0xffffffff;

// Ops are numbers here; a group is what becomes one op of the coarse plan.
class Coarsener {
 public:
  Coarsener(const Plan& plan, std::span<const OpId> boundaries)
      : plan_(plan),
        boundaries_(boundaries),
        group_of_(plan.size(), none),
        previous_(plan.size(), none),
        carried_(plan.size()),
        block_(plan.size()) {
    for (std::uint32_t op = 0; op < plan.size(); ++op)
      if (plan.next_in_lane[op] != no_op)
        previous_[plan.next_in_lane[op].index] = op;
    std::uint32_t block = 0;
    for (std::uint32_t op = 0; op < plan.size(); ++op) {
      while (block < boundaries.size() && boundaries[block].index <= op) ++block;
      block_[op] = block;
    }
    find_predecessors();
  }

  CoarsePlan run() {
    for (std::uint32_t op = 0; op < plan_.size(); ++op) place(op);
    for (Group& group : groups_)
      for (const std::uint32_t on : group.waits_for) group.predecessors.push_back(group_of_[on]);
    for (std::uint32_t group = 0; group < groups_.size(); ++group) share_launch(group);
    return write();
  }

 private:
  struct Group {
    std::vector<std::uint32_t> parts;         // old ops, in order
    std::vector<std::uint32_t> waits_for;     // old ops
    std::vector<std::uint32_t> predecessors;  // their groups
    std::uint32_t lane_next = none;           // group
    bool follows_lane = false;
    bool is_open = true;  // nobody but its lane waits for it so far
    bool is_gone = false;
  };

  void find_predecessors() {
    predecessor_begin_.assign(plan_.size() + 1, 0);
    for (const OpId op : plan_.successors) ++predecessor_begin_[op.index + 1];
    for (std::size_t op = 0; op < plan_.size(); ++op) predecessor_begin_[op + 1] += predecessor_begin_[op];
    predecessors_.resize(plan_.successors.size());
    std::vector<std::uint32_t> next(predecessor_begin_.begin(), predecessor_begin_.end() - 1);
    for (std::uint32_t op = 0; op < plan_.size(); ++op)
      for (std::uint32_t i = plan_.successor_begin[op]; i < plan_.successor_begin[op + 1]; ++i)
        predecessors_[next[plan_.successors[i].index]++] = op;
  }

  std::span<const std::uint32_t> predecessors(std::uint32_t op) const {
    return std::span(predecessors_)
        .subspan(predecessor_begin_[op], predecessor_begin_[op + 1] - predecessor_begin_[op]);
  }
  bool has_successors(std::uint32_t op) const {
    return plan_.successor_begin[op] != plan_.successor_begin[op + 1];
  }
  bool is_plain_join(std::uint32_t op) const {
    return plan_.kind[op] == OpKind::join && plan_.amount[op] == 0 && plan_.path[op] == no_path;
  }
  bool is_kernel(std::uint32_t op) const {
    return plan_.kind[op] == OpKind::transfer && plan_.paths[plan_.path[op]].kind == PathKind::kernel;
  }
  // A kernel leaves its lane when it ends; so does whatever is no transfer.
  bool ends_with_lane(std::uint32_t op) const {
    return (plan_.kind[op] != OpKind::transfer && plan_.kind[op] != OpKind::relay) || is_kernel(op);
  }
  bool is_alone(std::uint32_t op) const { return predecessors(op).empty() && carried_[op].empty(); }

  // The op before this one on its lane, where it belongs to the same block.
  std::uint32_t neighbour(std::uint32_t op) const {
    const std::uint32_t before = previous_[op];
    return before != none && block_[before] == block_[op] ? before : none;
  }

  void place(std::uint32_t op) {
    if (is_mark(op))
      return mark(op);
    if (is_wait(op))
      return hand_on(op);
    const std::uint32_t before = neighbour(op);
    if (before != none && is_kernel(op) && is_alone(op) && continues(group_of_[before], op))
      return append(group_of_[before], op);
    make_group(op);
  }

  // Ends when the op before it on its lane does.
  bool is_mark(std::uint32_t op) const {
    const std::uint32_t before = neighbour(op);
    return is_plain_join(op) && before != none && is_alone(op) && group_of_[before] != none &&
           ends_with_lane(groups_[group_of_[before]].parts.back());
  }
  void mark(std::uint32_t op) {
    group_of_[op] = group_of_[previous_[op]];
    groups_[group_of_[op]].is_open = false;
  }

  // Only holds its lane until others have ended.
  bool is_wait(std::uint32_t op) const {
    const OpId next = plan_.next_in_lane[op];
    return is_plain_join(op) && !has_successors(op) && next != no_op && block_[next.index] == block_[op] &&
           section_of(plan_, OpId{op}).category == Category::communication;
  }
  void hand_on(std::uint32_t op) {
    const std::uint32_t next = plan_.next_in_lane[op].index;
    carried_[next] = std::move(carried_[op]);
    for (const std::uint32_t on : predecessors(op)) carried_[next].push_back(on);
    previous_[next] = previous_[op];
  }

  bool continues(std::uint32_t group, std::uint32_t op) const {
    if (group == none)
      return false;
    const std::uint32_t first = groups_[group].parts.front();
    return groups_[group].is_open && is_kernel(first) && plan_.path[first] == plan_.path[op];
  }
  void append(std::uint32_t group, std::uint32_t op) {
    groups_[group].parts.push_back(op);
    groups_[group].is_open = !has_successors(op);
    group_of_[op] = group;
  }

  void make_group(std::uint32_t op) {
    const auto id = static_cast<std::uint32_t>(groups_.size());
    Group group{.parts = {op}, .waits_for = std::move(carried_[op]), .predecessors = {}};
    for (const std::uint32_t on : predecessors(op)) group.waits_for.push_back(on);
    if (previous_[op] != none) {
      groups_[group_of_[previous_[op]]].lane_next = id;
      group.follows_lane = true;
    }
    group.is_open = !has_successors(op);
    group_of_[op] = id;
    groups_.push_back(std::move(group));
  }

  // A delay that nothing but one op leads to and that has its lane to itself.
  bool is_launch(std::uint32_t group, std::int64_t amount) const {
    const Group& launch = groups_[group];
    const std::uint32_t op = launch.parts.front();
    return plan_.kind[op] == OpKind::delay && plan_.amount[op] == amount && !launch.follows_lane &&
           launch.lane_next == none && launch.predecessors.size() == 1;
  }

  // Whatever waits for `launch` waits for `transfer` as well, or is it.
  bool leads_only_to(std::uint32_t launch, std::uint32_t transfer) const {
    const std::uint32_t op = groups_[launch].parts.front();
    for (std::uint32_t i = plan_.successor_begin[op]; i < plan_.successor_begin[op + 1]; ++i) {
      const std::uint32_t next = group_of_[plan_.successors[i].index];
      if (next == none)
        return false;
      const std::vector<std::uint32_t>& on = groups_[next].predecessors;
      if (next != transfer && std::find(on.begin(), on.end(), transfer) == on.end())
        return false;
    }
    return true;
  }

  // The last of equal launches ends as much after the last op before them as each after its own.
  void share_launch(std::uint32_t transfer) {
    std::vector<std::uint32_t>& launches = groups_[transfer].predecessors;
    if (plan_.kind[groups_[transfer].parts.front()] != OpKind::transfer || launches.size() < 2)
      return;
    const std::int64_t amount = plan_.amount[groups_[launches.front()].parts.front()];
    const auto is_shared = [&](std::uint32_t launch) {
      return is_launch(launch, amount) && leads_only_to(launch, transfer);
    };
    if (!std::all_of(launches.begin(), launches.end(), is_shared))
      return;
    Group& kept = groups_[launches.front()];
    for (std::size_t i = 1; i < launches.size(); ++i) {
      kept.predecessors.push_back(groups_[launches[i]].predecessors.front());
      groups_[launches[i]].is_gone = true;
      ++gone_;
    }
    forget_elsewhere(launches, transfer);
    launches.resize(1);
  }

  void forget_elsewhere(std::span<const std::uint32_t> launches, std::uint32_t transfer) {
    for (const std::uint32_t launch : launches) {
      const std::uint32_t op = groups_[launch].parts.front();
      for (std::uint32_t i = plan_.successor_begin[op]; i < plan_.successor_begin[op + 1]; ++i)
        if (const std::uint32_t next = group_of_[plan_.successors[i].index]; next != transfer)
          std::erase(groups_[next].predecessors, launch);
    }
  }

  CoarsePlan write() {
    CoarsePlan coarse;
    coarse.plan.lanes = plan_.lanes;
    coarse.plan.paths = plan_.paths;
    coarse.plan.traffics = plan_.traffics;
    coarse.plan.names = plan_.names;
    std::vector<std::uint32_t> number(groups_.size(), none);
    for (std::uint32_t group = 0; group < groups_.size(); ++group)
      if (!groups_[group].is_gone)
        number[group] = write_op(groups_[group], coarse);
    coarse.part_begin.push_back(static_cast<std::uint32_t>(coarse.parts.size()));
    write_dependencies(number, coarse.plan);
    write_relays(number, coarse.plan);
    for (const std::uint32_t group : group_of_)
      coarse.op_of.push_back(group == none || number[group] == none ? no_op : OpId{number[group]});
    for (const Group& group : groups_)
      for (std::size_t part = 0; part + 1 < group.parts.size(); ++part)
        coarse.op_of[group.parts[part]] = no_op;
    for (const OpId boundary : boundaries_) coarse.boundaries.push_back(first_from(boundary, number));
    return coarse;
  }

  // Nothing is merged with a relay.
  void write_relays(std::span<const std::uint32_t> number, Plan& plan) const {
    const auto moved = [&](OpId op) { return OpId{number[group_of_[op.index]]}; };
    plan.relays = plan_.relays;
    plan.message_count = plan_.message_count;
    for (Relay& relay : plan.relays) {
      relay.op = moved(relay.op);
      relay.feeder = moved(relay.feeder);
    }
  }

  // Groups stand in the order of their first ops.
  OpId first_from(OpId boundary, std::span<const std::uint32_t> number) const {
    auto group = static_cast<std::size_t>(
        std::lower_bound(groups_.begin(), groups_.end(), boundary.index,
                         [](const Group& g, std::uint32_t op) { return g.parts.front() < op; }) -
        groups_.begin());
    while (group < groups_.size() && groups_[group].is_gone) ++group;
    const std::size_t ops = groups_.size() - gone_;
    return OpId{group < groups_.size() ? number[group] : static_cast<std::uint32_t>(ops)};
  }

  std::uint32_t write_op(const Group& group, CoarsePlan& coarse) const {
    Plan& plan = coarse.plan;
    const std::uint32_t first = group.parts.front();
    const auto op = static_cast<std::uint32_t>(plan.size());
    std::int64_t amount = 0;
    for (const std::uint32_t part : group.parts) amount = arithmetic::checked_sum(amount, plan_.amount[part]);
    plan.kind.push_back(plan_.kind[first]);
    plan.lane.push_back(plan_.lane[first]);
    plan.amount.push_back(amount);
    plan.path.push_back(plan_.path[first]);
    if (!plan_.priority.empty())
      plan.priority.push_back(plan_.priority[first]);
    const Section& section = section_of(plan_, OpId{first});
    if (plan.sections.empty() || plan.sections.back().name != section.name ||
        plan.sections.back().category != section.category)
      plan.sections.push_back({OpId{op}, section.name, section.category});
    coarse.part_begin.push_back(static_cast<std::uint32_t>(coarse.parts.size()));
    if (is_kernel(first))
      for (const std::uint32_t part : group.parts) coarse.parts.push_back(OpId{part});
    return op;
  }

  void write_dependencies(std::span<const std::uint32_t> number, Plan& plan) const {
    plan.next_in_lane.assign(plan.size(), no_op);
    plan.dependency_count.assign(plan.size(), 0);
    plan.successor_begin.assign(plan.size() + 1, 0);
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      if (groups_[group].is_gone)
        continue;
      const std::uint32_t op = number[group];
      if (groups_[group].lane_next != none)
        plan.next_in_lane[op] = OpId{number[groups_[group].lane_next]};
      plan.dependency_count[op] = static_cast<std::uint32_t>(groups_[group].predecessors.size()) +
                                  (groups_[group].follows_lane ? 1 : 0);
      for (const std::uint32_t on : groups_[group].predecessors) ++plan.successor_begin[number[on] + 1];
    }
    for (std::size_t op = 0; op < plan.size(); ++op) plan.successor_begin[op + 1] += plan.successor_begin[op];
    plan.successors.resize(plan.successor_begin.back());
    std::vector<std::uint32_t> next(plan.successor_begin.begin(), plan.successor_begin.end() - 1);
    for (std::uint32_t group = 0; group < groups_.size(); ++group)
      if (!groups_[group].is_gone)
        for (const std::uint32_t on : groups_[group].predecessors)
          plan.successors[next[number[on]]++] = OpId{number[group]};
  }

  const Plan& plan_;
  std::span<const OpId> boundaries_;
  std::vector<std::uint32_t> predecessor_begin_;
  std::vector<std::uint32_t> predecessors_;
  std::vector<std::uint32_t> group_of_;              // by op: the group that ends when it does
  std::vector<std::uint32_t> previous_;              // by op: the one before it on its lane
  std::vector<std::vector<std::uint32_t>> carried_;  // by op: what a join that fell away waited for
  std::vector<std::uint32_t> block_;                 // by op: how many boundaries lie before it
  std::vector<Group> groups_;
  std::size_t gone_ = 0;
};

}  // namespace

CoarsePlan coarsen(const Plan& plan, std::span<const OpId> boundaries) {
  return Coarsener(plan, boundaries).run();
}

}  // namespace lockstep
