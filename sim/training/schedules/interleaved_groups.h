#pragma once

// How interleaved schedules deal micro-batches to the parts of a stage.
//
// Problem:   a stage that holds several parts of the model has to take micro-batches in an order in which every stage
//            finds the next one ready.
// Idea:      micro-batches go in groups of as many as there are stages: a group passes chunk 0, then chunk 1, ...
// Invariant: a turn is one forward of one chunk; stages take the same turns in the same order.
// Reference: Narayanan et al. 2021, arXiv 2104.04473, section 2.2.

#include <vector>

#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {

struct InterleavedOrder {
  std::int64_t forwards_first = 0;  // beyond those that the first backward needs
  bool joins_pairs = false;         // each forward with the backward behind it
};

// A stage's passes: forwards until its first backward can come, then forwards and backwards in turn.
std::vector<Pass> interleaved_passes(const PipelineShape& shape, std::int64_t stage,
                                     const InterleavedOrder& order);

// Of a last group that is not full.
std::vector<ShapeProblem> problems_of_groups(const PipelineShape& shape);

}  // namespace lockstep
