#include "sim/report/chakra_waits.h"

namespace lockstep {

PlanGraph::PlanGraph(const Plan& plan) : begin_(plan.size() + 1), before_(plan.successors.size()) {
  for (const OpId next : plan.successors) ++begin_[next.index + 1];
  for (std::size_t op = 0; op < plan.size(); ++op) begin_[op + 1] += begin_[op];
  std::vector<std::uint32_t> place(begin_.begin(), begin_.end() - 1);
  for (std::uint32_t op = 0; op < plan.size(); ++op)
    for (std::uint32_t i = plan.successor_begin[op]; i < plan.successor_begin[op + 1]; ++i)
      before_[place[plan.successors[i].index]++] = OpId{op};
}

ChakraWaits::ChakraWaits(const ExportedPlan& plan, const Run& run)
    : plan_(plan), run_(run), graph_(plan.plan()), places_(plan.plan().size()) {}

// Who receives a message waits for the receiving.
NodePlace ChakraWaits::seen_by(std::uint32_t rank, OpId op) const {
  const auto received = received_.find(op.index);
  return received != received_.end() && received->second.rank == rank ? received->second : places_[op.index];
}

// Of the warm-up: the op that stands there in the last iteration. no_op: that is another iteration.
OpId ChakraWaits::in_last_iteration(OpId op) const {
  const IterationOps& warm_up = run_.iterations.front();
  const IterationOps& last = run_.iterations.back();
  const bool is_alike = warm_up.last.index - warm_up.first.index == last.last.index - last.first.index;
  return is_alike && op >= warm_up.first ? OpId{op.index - warm_up.first.index + last.first.index} : no_op;
}

NodePlace ChakraWaits::waited_for(const NodePlace& place, OpId op) const {
  const NodePlace there = seen_by(place.rank, op);
  if (there.rank == NodePlace::nobody)
    plan_.refuse(op, "is waited for before it has ended");
  const bool is_near = there.step == place.step || there.step + 1 == place.step;
  if (!is_near || (there.rank != place.rank && there.step != place.step))
    plan_.refuse(op, "is waited for by a later iteration");
  return there;
}

void ChakraWaits::add_to(ChakraNode& node, const NodePlace& place, OpId begin) {
  std::vector<std::int64_t> after;
  for (const OpId before : graph_.before(begin)) {
    if (is_before_all(before)) {
      for_previous_.push_back({place.rank, place.id, before});
      continue;
    }
    const NodePlace there = waited_for(place, before);
    if (there.rank == place.rank)
      node.data_dependencies.push_back(there.id);
    else
      after.insert(after.end(), {there.rank, there.in_step});
  }
  if (!after.empty())
    node.add(chakra_key::after, std::move(after));
}

std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> ChakraWaits::previous() const {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> lists;
  for (const WaitForPrevious& wait : for_previous_) {
    const OpId there = in_last_iteration(wait.op);
    const NodePlace place = there == no_op ? NodePlace{} : seen_by(wait.rank, there);
    if (place.rank == NodePlace::nobody)
      plan_.refuse(wait.op, "is waited for by the next iteration");
    std::vector<std::int64_t>& list = lists[{wait.rank, wait.id}];
    list.insert(list.end(), {place.rank, place.in_step});
  }
  return lists;
}

}  // namespace lockstep
