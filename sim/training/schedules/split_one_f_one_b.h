#pragma once

// 1F1B with backward in two halves, the half that nobody waits for put off.
//
// Problem:   in 1F1B the stage before waits for a whole backward, though it needs but the half that gives the
//            gradient of what came in.
// Idea:      that half runs where 1F1B runs a backward; the weights' half of a micro-batch runs some
//            backwards later, and what is left of it fills the end, where a stage would idle. Two numbers
//            make the schedules ZB-H1 and ZB-H2: how many forwards come first, and by how many backwards the
//            other half is put off.
// Invariant: a stage holds at most the sum of both numbers of micro-batches, so many of them put off; a
//            backward frees its micro-batch before the next forward takes another.
// Reference: Qi et al. 2024, "Zero Bubble (Almost) Pipeline Parallelism", arXiv 2401.10241, section 2.

#include <vector>

#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {

struct SplitOrder {
  std::int64_t forwards_first = 1;
  std::int64_t backwards_put_off = 0;
};

std::vector<Pass> split_one_f_one_b(const PipelineShape& shape, const SplitOrder& order);

}  // namespace lockstep
