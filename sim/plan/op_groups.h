#pragma once

// Which ops of a plan become one op of a coarser one.
//
// Idea:      kernels that follow each other on a lane, with nobody waiting in between, are one group; a join that
//            only marks the end of the op before it belongs to that op's group; a join that holds a lane hands
//            what it waits for to the lane's next op; equal launches before one transfer become one launch
//            after the last.
// Invariant: what a group's op will wait for ends when the group's first op could start in the old plan. Groups
//            stand in the order of their first ops; none reaches across a boundary.
// Cost:      linear in ops and dependencies.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/plan/plan.h"

namespace lockstep {

inline constexpr std::uint32_t no_group = 0xffffffff;

struct OpGroup {
  std::vector<std::uint32_t> parts = {};         // old ops, in order
  std::vector<std::uint32_t> predecessors = {};  // groups
  std::uint32_t lane_next = no_group;
  bool follows_lane = false;
  bool is_gone = false;  // another does what it did
};

struct OpGroups {
  std::vector<OpGroup> groups;
  std::vector<std::uint32_t> of_op;  // the group that ends when the old op does; no_group: none does
};

bool is_kernel(const Plan& plan, OpId op);

// Merges kernels and joins. `boundaries` ascend: ops on both sides of one stay apart.
OpGroups group_ops(const Plan& plan, std::span<const OpId> boundaries);

// Lets one of equal launches before one transfer stand for all.
void share_launches(const Plan& plan, OpGroups& groups);

}  // namespace lockstep
