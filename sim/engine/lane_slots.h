#pragma once

// Who may start on a lane that holds more than one op, or chooses among them.
//
// Problem:   most lanes are compiled into links from op to op; a pool of workers, a copy engine or a server's handlers
//            are not.
// Idea:      a pool in order counts its slots: a join takes one, another returns it, and the next that takes one waits
//            until then. A lane that runs what is ready keeps a heap of what waits, the lowest priority number on
//            top, then the first to arrive.
// Invariant: of a pool at most one op waits, because each that takes a slot starts only after the one before it on its
//            lane has. Whoever is told that an op may start starts it now, and asks again.
// Cost:      two comparisons an op where every lane keeps its order; no allocation once warm.

#include <cstdint>
#include <vector>

#include "sim/plan/plan.h"

namespace lockstep {

class LaneSlots {
 public:
  // The plan must outlive it.
  explicit LaneSlots(const Plan& plan);

  // Of an op that is ready: whether it has to wait for another. Else it has its slot from now on.
  bool must_wait(OpId op) { return must_wait_for_slot(op) || must_wait_in_queue(op); }

  // Each of them tells who may start for that; no_op: nobody waits, or this returns nothing.
  OpId return_slot(OpId join);
  OpId leave(OpId op) { return queues_.empty() ? no_op : next_in_queue(op); }

 private:
  struct Pool {
    std::uint32_t free_slots;
    bool is_pool;
    OpId waiting = no_op;
  };
  struct Waiting {
    std::uint32_t priority;
    std::uint32_t arrival;
    OpId op;
    // Heaps keep the greatest on top.
    bool operator<(const Waiting& other) const {
      return priority != other.priority ? priority > other.priority : arrival > other.arrival;
    }
  };
  struct ReadyQueue {
    std::uint32_t free_slots = 0;
    std::uint32_t ops = 0;
    std::vector<Waiting> waiting;
  };

  bool changes_slots(OpId op) const {
    return !pools_.empty() && plan_.kind[op.index] == OpKind::join &&
           pools_[plan_.lane[op.index].index].is_pool;
  }
  bool must_wait_for_slot(OpId op) {
    if (!changes_slots(op) || plan_.amount[op.index] <= 0)
      return false;
    Pool& pool = pools_[plan_.lane[op.index].index];
    if (pool.free_slots == 0) {
      pool.waiting = op;
      return true;
    }
    --pool.free_slots;
    return false;
  }
  bool must_wait_in_queue(OpId op) { return !queues_.empty() && must_queue(op); }

  void make_pools();
  void make_queues();
  ReadyQueue* queue_of(OpId op);
  bool must_queue(OpId op);
  OpId next_in_queue(OpId leaving);

  const Plan& plan_;
  std::vector<Pool> pools_;         // by lane; empty where none is one
  std::vector<ReadyQueue> queues_;  // by lane; empty where every lane keeps its order
  std::uint32_t arrivals_ = 0;
};

}  // namespace lockstep
