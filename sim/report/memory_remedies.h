#pragma once

// What would make a step fit into the memory of a GPU.
//
// Problem:   "out of memory" alone tells nobody what to do about it.
// Idea:      change one thing at a time, cheapest in time first, and simulate each: compute attention or whole
//            blocks again, partition states, gradients and weights, halve the micro-batch and accumulate twice
//            as many. Then all of it at once; and where even that is too much, as many nodes as the
//            partitioned bytes need beside what no number of ranks makes smaller.
// Invariant: every remedy but more nodes keeps the global batch. Partitioned strategies come with their usual
//            framework's defaults.
// Cost:      a simulation of one iteration for each change.

#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

struct MemoryRemedy {
  std::string change;  // as of --set: "training.recompute=full"; several joined by spaces
  Bytes total;         // the peak of one GPU then
  bool fits = false;
};

std::vector<MemoryRemedy> find_memory_remedies(const Scenario& scenario);

// "fits in no layout ..." where no remedy helps; empty otherwise.
std::string describe_hopelessness(const std::vector<MemoryRemedy>& remedies, Bytes capacity);

}  // namespace lockstep
