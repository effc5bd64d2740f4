#pragma once

// What a GPU holds at every moment of an iteration, and when it holds most.
//
// Problem:   what is allocated late in a step takes the place of what was released before: a sum over the
//            categories asks for more memory than the step does.
// Idea:      sort what the strategy wrote about memory by when its ops ran, and add it up from what stands.
// Invariant: changes at one instant keep the order in which they were written. The categories of a moment
//            add up to its total; at the end of the iteration only what stands is left.
// Cost:      n log n in the changes of one iteration, for each representative.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/run/simulate.h"
#include "sim/training/memory.h"

namespace lockstep {

struct MemoryMoment {
  Time time;
  OpId op = no_op;  // at whose start or end it begins; no_op: before the iteration
  OpEdge edge = OpEdge::start;
  MemoryUse use;
};

// What stands all the time, by representative: stages of a pipeline hold unlike parts.
std::vector<MemoryUse> standing_memory(const Scenario& scenario, const Simulation& simulation);

// What one representative holds in the last iteration of the steady run: a moment for each change, one after another
// or all of them.
void follow_memory(const Run& run, const MemoryUse& standing, std::size_t representative,
                   const std::function<void(const MemoryMoment&)>& visit);
std::vector<MemoryMoment> track_memory(const Run& run, const MemoryUse& standing, std::size_t representative);

struct MemoryPeak {
  std::size_t representative = 0;
  MemoryMoment moment;  // the first one with the most
};
// Of the representative that holds most. `standing`: by representative.
MemoryPeak find_memory_peak(const Run& run, std::span<const MemoryUse> standing);

// "at backward layer4.2" or "after forward layer1.0"; empty before the iteration.
std::string describe_moment(const Plan& plan, const MemoryMoment& moment);

}  // namespace lockstep
