#pragma once

// Measurements that take turns.
//
// Problem:   a machine drifts: two minutes of computing can slow one that began cool, or shares its cores, by half.
//            What is measured first and what is measured last differ by that, whatever they are.
// Idea:      what is compared is measured a block at a time, in turns, until each has all its blocks.
// Invariant: all ranks take the same turns.

#include <vector>

namespace lockstep::harness {

class TakesTurns {
 public:
  virtual ~TakesTurns() = default;
  virtual bool is_done() const = 0;
  virtual void run_block() = 0;
};

void take_turns(const std::vector<TakesTurns*>& measurements);

}  // namespace lockstep::harness
