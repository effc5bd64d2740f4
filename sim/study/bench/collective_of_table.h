#pragma once

// Which collective a table is of, by its own figures.
//
// Problem:   most published logs have lost the line that names their program, and a wrong name beside one is
//            swallowed: the fit then believes that an all_gather moves an all_reduce's bytes.
// Idea:      busbw is algbw times a factor of collective and ranks: 2(n-1)/n, (n-1)/n or 1. What is printed of
//            the reduction and of the root parts some of those that share a factor.
// Invariant: a row excludes a factor only where the digits it prints do; with two ranks, whose all_reduce has
//            the factor 1 too, nothing is excluded that cannot be.
// Cost:      a few multiplications a row.
// Reference: NVIDIA/nccl-tests doc/PERFORMANCE.md ("Bus bandwidth"), src/*.cu (GetBw).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/study/logs/collective_log.h"

namespace lockstep {

// All that the rows leave possible; empty where they say nothing.
std::vector<CollectiveOp> possible_collectives(const CollectiveLog& log, std::int64_t ranks);

// The row that most plainly cannot be of `op`: "FILE:LINE: found ..., expected ...". Nothing: none contradicts.
std::optional<std::string> describe_other_collective(const CollectiveLog& log, CollectiveOp op,
                                                     std::int64_t ranks);

// "all_gather, reduce_scatter".
std::string names_of(const std::vector<CollectiveOp>& ops);

}  // namespace lockstep
