#pragma once

// Ranks that run one program: those of a stage of a pipeline.
//
// Problem:   ranks of different stages hold different layers, and what is written for the one is not what the
//            other does.
// Idea:      a cohort has representatives of its own, and while it is entered (CohortScope) a plan writer writes
//            for these alone. Lists by representative are then lists by place in the cohort.
// Invariant: every role belongs to one cohort, for what a rank runs is part of what its role is.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/plan/roles.h"

namespace lockstep {

struct Cohort {
  static constexpr std::uint32_t elsewhere = 0xffffffff;

  std::vector<Rank> representatives;
  std::vector<std::uint32_t> roles;     // theirs
  std::vector<std::uint32_t> place_of;  // by role: where in `representatives` it is, or `elsewhere`

  bool has(std::uint32_t role) const { return place_of[role] != elsewhere; }
};

// `cohort_of`: by rank, 0 .. cohorts - 1; each has ranks.
std::vector<Cohort> cohorts_of(const Roles& roles, std::span<const std::uint32_t> cohort_of,
                               std::uint32_t cohorts);

}  // namespace lockstep
