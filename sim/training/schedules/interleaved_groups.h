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

// The chunk whose forward a stage runs in a turn; backwards come from the last chunk in the same turns.
std::int64_t interleaved_chunk(const PipelineShape& shape, std::int64_t turn);

// Forwards before the first backward's turn.
std::int64_t interleaved_warm_up(const PipelineShape& shape, std::int64_t stage);

// Of a last group that is not full.
std::vector<ShapeProblem> problems_of_groups(const PipelineShape& shape);

}  // namespace lockstep
