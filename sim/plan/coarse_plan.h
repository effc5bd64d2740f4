#pragma once

// The same plan in fewer ops.
//
// Problem:   a run of ten thousand iterations needs no name for each kernel, only when the ranks meet.
// Idea:      rewrite the graph where that moves nothing. Kernels that follow each other on a lane, with nobody
//            waiting in between, become one; a join that only marks the end of the op before it falls away; a
//            join that holds a lane hands what it waits for to the lane's next op; equal launches before one
//            transfer become one launch after the last.
// Invariant: every op that stays starts and ends when it did, and so do the merged kernels as one. (Rounded
//            work: where links slow kernels down, each op may round up a picosecond, and there are fewer. And
//            merged kernels are bound as all of them are on average, so that a collective which runs beside a
//            part of them slows that part as it would slow all.)
//            Nothing is merged across the given boundaries.
// Cost:      linear in ops and dependencies.

#include <span>
#include <vector>

#include "sim/plan/plan.h"

namespace lockstep {

struct CoarsePlan {
  Plan plan;                // amounts of kernels are the sums of what was merged; kernel_of is empty
  std::vector<OpId> op_of;  // by old op: the one that ends when it did; no_op: none does
  std::vector<std::uint32_t> part_begin;  // by new op, ops + 1: offsets into parts
  std::vector<OpId> parts;                // the old kernels merged into it, in order
  std::vector<OpId> boundaries;           // where the given ones lie now
};

// Of a plan whose kernels are priced. `boundaries` ascend: ops on both sides of one stay apart.
CoarsePlan coarsen(const Plan& plan, std::span<const OpId> boundaries);

}  // namespace lockstep
