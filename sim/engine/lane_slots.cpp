#include "sim/engine/lane_slots.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

bool runs_when_ready(const Lane& lane) {
  return lane.discipline == Discipline::when_ready;
}

bool is_pool(const Lane& lane) {
  return lane.slots > 1 && !runs_when_ready(lane);
}

}  // namespace

LaneSlots::LaneSlots(const Plan& plan) : plan_(plan) {
  if (std::any_of(plan.lanes.begin(), plan.lanes.end(), is_pool))
    make_pools();
  if (std::any_of(plan.lanes.begin(), plan.lanes.end(), runs_when_ready))
    make_queues();
}

void LaneSlots::make_pools() {
  pools_.reserve(plan_.lanes.size());
  for (const Lane& lane : plan_.lanes) pools_.push_back({.free_slots = lane.slots, .is_pool = is_pool(lane)});
}

void LaneSlots::make_queues() {
  queues_.resize(plan_.lanes.size());
  for (const LaneId lane : plan_.lanes.ids())
    queues_[lane.index].free_slots = runs_when_ready(plan_.lanes[lane]) ? plan_.lanes[lane].slots : 0;
  for (const LaneId lane : plan_.lane) ++queues_[lane.index].ops;
  for (ReadyQueue& queue : queues_)
    if (queue.free_slots > 0)
      queue.waiting.reserve(queue.ops);
}

OpId LaneSlots::return_slot(OpId join) {
  if (!changes_slots(join) || plan_.amount[join.index] >= 0)
    return no_op;
  Pool& pool = pools_[plan_.lane[join.index].index];
  ++pool.free_slots;
  return std::exchange(pool.waiting, no_op);
}

// Null: its lane keeps the order in which it was written.
LaneSlots::ReadyQueue* LaneSlots::queue_of(OpId op) {
  const LaneId lane = plan_.lane[op.index];
  return runs_when_ready(plan_.lanes[lane]) ? &queues_[lane.index] : nullptr;
}

bool LaneSlots::must_queue(OpId op) {
  ReadyQueue* queue = queue_of(op);
  if (queue == nullptr)
    return false;
  if (queue->free_slots > 0) {
    --queue->free_slots;
    return false;
  }
  const std::uint32_t priority = plan_.priority.empty() ? 0 : plan_.priority[op.index];
  queue->waiting.push_back({priority, arrivals_++, op});
  std::push_heap(queue->waiting.begin(), queue->waiting.end());
  return true;
}

OpId LaneSlots::next_in_queue(OpId leaving) {
  ReadyQueue* queue = queue_of(leaving);
  if (queue == nullptr)
    return no_op;
  ++queue->free_slots;
  if (queue->waiting.empty())
    return no_op;
  std::pop_heap(queue->waiting.begin(), queue->waiting.end());
  const OpId next = queue->waiting.back().op;
  queue->waiting.pop_back();
  return next;
}

}  // namespace lockstep
