#include "sim/plan/op_groups.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

constexpr std::uint32_t no_op_before = 0xffffffff;

// By op: what it depends on.
class Predecessors {
 public:
  explicit Predecessors(const Plan& plan) : begin_(plan.size() + 1), ops_(plan.successors.size()) {
    for (const OpId op : plan.successors) ++begin_[op.index + 1];
    for (std::size_t op = 0; op < plan.size(); ++op) begin_[op + 1] += begin_[op];
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (std::uint32_t op = 0; op < plan.size(); ++op)
      for (std::uint32_t i = plan.successor_begin[op]; i < plan.successor_begin[op + 1]; ++i)
        ops_[next[plan.successors[i].index]++] = op;
  }

  std::span<const std::uint32_t> of(std::uint32_t op) const {
    return std::span(ops_).subspan(begin_[op], begin_[op + 1] - begin_[op]);
  }

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<std::uint32_t> ops_;
};

// By op: the one before it on its lane.
std::vector<std::uint32_t> previous_on_lane(const Plan& plan) {
  std::vector<std::uint32_t> previous(plan.size(), no_op_before);
  for (std::uint32_t op = 0; op < plan.size(); ++op)
    if (plan.next_in_lane[op] != no_op)
      previous[plan.next_in_lane[op].index] = op;
  return previous;
}

// By op: how many boundaries lie before it.
std::vector<std::uint32_t> blocks_between(const Plan& plan, std::span<const OpId> boundaries) {
  std::vector<std::uint32_t> blocks(plan.size());
  std::uint32_t block = 0;
  for (std::uint32_t op = 0; op < plan.size(); ++op) {
    while (block < boundaries.size() && boundaries[block].index <= op) ++block;
    blocks[op] = block;
  }
  return blocks;
}

// Ops are numbers here, taken in the order of the plan.
class Grouper {
 public:
  Grouper(const Plan& plan, std::span<const OpId> boundaries)
      : plan_(plan),
        predecessors_(plan),
        previous_(previous_on_lane(plan)),
        block_(blocks_between(plan, boundaries)),
        carried_(plan.size()) {
    found_.of_op.assign(plan.size(), no_group);
  }

  OpGroups run() {
    for (std::uint32_t op = 0; op < plan_.size(); ++op) place(op);
    for (std::size_t group = 0; group < found_.groups.size(); ++group)
      for (const std::uint32_t on : waits_for_[group])
        found_.groups[group].predecessors.push_back(found_.of_op[on]);
    return std::move(found_);
  }

 private:
  bool has_successors(std::uint32_t op) const {
    return plan_.successor_begin[op] != plan_.successor_begin[op + 1];
  }
  bool is_plain_join(std::uint32_t op) const {
    return plan_.kind[op] == OpKind::join && plan_.amount[op] == 0 && plan_.path[op] == no_path;
  }
  // A kernel leaves its lane when it ends; so does whatever is no transfer.
  bool ends_with_lane(std::uint32_t op) const {
    const OpKind kind = plan_.kind[op];
    return (kind != OpKind::transfer && kind != OpKind::relay) || is_kernel(plan_, OpId{op});
  }
  bool is_alone(std::uint32_t op) const { return predecessors_.of(op).empty() && carried_[op].empty(); }

  // The op before this one on its lane, where it belongs to the same block.
  std::uint32_t neighbour(std::uint32_t op) const {
    const std::uint32_t before = previous_[op];
    return before != no_op_before && block_[before] == block_[op] ? before : no_op_before;
  }

  void place(std::uint32_t op) {
    const std::uint32_t before = neighbour(op);
    const std::uint32_t group = before == no_op_before ? no_group : found_.of_op[before];
    if (group != no_group && is_mark(op, group))
      mark(op, group);
    else if (is_wait(op))
      hand_on(op);
    else if (group != no_group && continues(op, group))
      append(op, group);
    else
      make_group(op);
  }

  // Ends when the op before it on its lane does.
  bool is_mark(std::uint32_t op, std::uint32_t group) const {
    return is_plain_join(op) && is_alone(op) && ends_with_lane(found_.groups[group].parts.back());
  }
  void mark(std::uint32_t op, std::uint32_t group) {
    found_.of_op[op] = group;
    is_open_[group] = false;
  }

  Category category_of(std::uint32_t op) const { return section_of(plan_, OpId{op}).category; }
  // Whoever waits there waits for the host, as the account of time tells it.
  bool waits_for_host(std::uint32_t op) const {
    return is_plain_join(op) && category_of(op) == Category::host_overhead;
  }

  // Only holds its lane until others have ended, and may leave that to the op after it.
  bool is_wait(std::uint32_t op) const {
    const OpId next = plan_.next_in_lane[op];
    return is_plain_join(op) && !has_successors(op) && next != no_op && block_[next.index] == block_[op] &&
           category_of(op) == Category::communication && !waits_for_host(next.index);
  }
  void hand_on(std::uint32_t op) {
    const std::uint32_t next = plan_.next_in_lane[op].index;
    carried_[next] = std::move(carried_[op]);
    for (const std::uint32_t on : predecessors_.of(op)) carried_[next].push_back(on);
    previous_[next] = previous_[op];
  }

  bool continues(std::uint32_t op, std::uint32_t group) const {
    const std::uint32_t first = found_.groups[group].parts.front();
    return is_kernel(plan_, OpId{op}) && is_alone(op) && is_open_[group] && is_kernel(plan_, OpId{first}) &&
           plan_.paths[plan_.path[first]].rank == plan_.paths[plan_.path[op]].rank;
  }
  void append(std::uint32_t op, std::uint32_t group) {
    found_.groups[group].parts.push_back(op);
    is_open_[group] = !has_successors(op);
    found_.of_op[op] = group;
  }

  void make_group(std::uint32_t op) {
    const auto id = static_cast<std::uint32_t>(found_.groups.size());
    std::vector<std::uint32_t> waits_for = std::move(carried_[op]);
    for (const std::uint32_t on : predecessors_.of(op)) waits_for.push_back(on);
    waits_for_.push_back(std::move(waits_for));
    is_open_.push_back(!has_successors(op));
    found_.groups.push_back({.parts = {op}, .follows_lane = previous_[op] != no_op_before});
    if (previous_[op] != no_op_before)
      found_.groups[found_.of_op[previous_[op]]].lane_next = id;
    found_.of_op[op] = id;
  }

  const Plan& plan_;
  Predecessors predecessors_;
  std::vector<std::uint32_t> previous_;
  std::vector<std::uint32_t> block_;
  std::vector<std::vector<std::uint32_t>> carried_;    // by op: what a join that fell away waited for
  std::vector<std::vector<std::uint32_t>> waits_for_;  // by group: old ops
  std::vector<bool> is_open_;                          // by group: nobody but its lane waits for it so far
  OpGroups found_;
};

// Equal delays that nothing but one transfer waits for.
class LaunchSharing {
 public:
  LaunchSharing(const Plan& plan, OpGroups& groups)
      : plan_(plan), of_op_(groups.of_op), groups_(groups.groups) {}

  // The last of equal launches ends as much after the last op before them as each after its own.
  void share(std::uint32_t transfer) {
    std::vector<std::uint32_t>& launches = groups_[transfer].predecessors;
    if (plan_.kind[first_of(transfer)] != OpKind::transfer || launches.size() < 2)
      return;
    for (const std::uint32_t launch : launches)
      if (!is_launch(launch, plan_.amount[first_of(launches.front())]) || !leads_only_to(launch, transfer))
        return;
    OpGroup& kept = groups_[launches.front()];
    for (std::size_t i = 1; i < launches.size(); ++i) {
      kept.predecessors.push_back(groups_[launches[i]].predecessors.front());
      groups_[launches[i]].is_gone = true;
    }
    forget_elsewhere(launches, transfer);
    launches.resize(1);
  }

 private:
  std::uint32_t first_of(std::uint32_t group) const { return groups_[group].parts.front(); }
  std::span<const OpId> successors_of(std::uint32_t group) const {
    const std::uint32_t op = first_of(group);
    return std::span(plan_.successors)
        .subspan(plan_.successor_begin[op], plan_.successor_begin[op + 1] - plan_.successor_begin[op]);
  }

  // A delay that nothing but one op leads to and that has its lane to itself.
  bool is_launch(std::uint32_t group, std::int64_t amount) const {
    const OpGroup& launch = groups_[group];
    const std::uint32_t op = first_of(group);
    return plan_.kind[op] == OpKind::delay && plan_.amount[op] == amount && !launch.follows_lane &&
           launch.lane_next == no_group && launch.predecessors.size() == 1;
  }

  // Whatever waits for `launch` waits for `transfer` as well, or is it.
  bool leads_only_to(std::uint32_t launch, std::uint32_t transfer) const {
    const auto waits_for_transfer = [&](OpId op) {
      const std::uint32_t next = of_op_[op.index];
      if (next == no_group)
        return false;
      const std::vector<std::uint32_t>& on = groups_[next].predecessors;
      return next == transfer || std::find(on.begin(), on.end(), transfer) != on.end();
    };
    const std::span<const OpId> next = successors_of(launch);
    return std::all_of(next.begin(), next.end(), waits_for_transfer);
  }

  void forget_elsewhere(std::span<const std::uint32_t> launches, std::uint32_t transfer) {
    for (const std::uint32_t launch : launches)
      for (const OpId op : successors_of(launch))
        if (const std::uint32_t next = of_op_[op.index]; next != transfer)
          std::erase(groups_[next].predecessors, launch);
  }

  const Plan& plan_;
  const std::vector<std::uint32_t>& of_op_;
  std::vector<OpGroup>& groups_;
};

}  // namespace

bool is_kernel(const Plan& plan, OpId op) {
  return plan.kind[op.index] == OpKind::transfer && plan.paths[plan.path[op.index]].kind == PathKind::kernel;
}

OpGroups group_ops(const Plan& plan, std::span<const OpId> boundaries) {
  return Grouper(plan, boundaries).run();
}

void share_launches(const Plan& plan, OpGroups& groups) {
  LaunchSharing sharing(plan, groups);
  for (std::uint32_t group = 0; group < groups.groups.size(); ++group) sharing.share(group);
}

}  // namespace lockstep
