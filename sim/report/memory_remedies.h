#pragma once

// What would make a step fit into the memory of a GPU.
//
// Problem:   "out of memory" alone tells nobody what to do about it.
// Idea:      change one thing at a time, cheapest in time first, and simulate each: compute attention or whole
//            blocks again, partition states, gradients and weights, halve the micro-batch and accumulate twice
//            as many. Then all of it at once; and where even that is too much, as many nodes as the
//            partitioned bytes need beside what no number of ranks makes smaller. A change is what --set would
//            do, loaded as --set would load it: options that it leaves without a use go to their defaults.
// Invariant: every remedy but more nodes keeps the global batch. Partitioned strategies come with their usual
//            framework's defaults.
// Cost:      a simulation of one iteration for each change, together about as long as a prediction may take; what would
//            come after that is not tried.

#include <functional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/load/load.h"
#include "sim/run/cluster_store.h"

namespace lockstep {

struct MemoryRemedy {
  Overrides changes;  // as of --set, in order
  Bytes total;        // the peak of one GPU then
  bool fits = false;
  bool is_at_any_scale = false;  // it does not fit on any number of nodes; `total` is what none divides
};

// The scenario as its file has it, with these changes on top. Throws ConfigError where they do not go together.
using ChangedScenario = std::function<Scenario(const Overrides&)>;

// `clusters`: as in `predict`.
std::vector<MemoryRemedy> find_memory_remedies(const LoadedScenario& scenario, const ChangedScenario& changed,
                                               ClusterStore* clusters = nullptr);

// "training.recompute=full model.batch_per_gpu=4"
std::string describe(const MemoryRemedy& remedy);

// "fits in no layout ..." where no remedy helps; empty otherwise.
std::string describe_hopelessness(const std::vector<MemoryRemedy>& remedies, Bytes capacity);

}  // namespace lockstep
