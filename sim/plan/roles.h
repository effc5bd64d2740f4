#pragma once

// Which ranks are alike.
//
// Problem:   a cluster of 100,000 GPUs is mostly the same GPU many times over.
// Idea:      ranks fall into roles; one representative of each is simulated and stands for all. The
//            representative is the lowest rank of its role.
// Invariant: roles form an equitable partition: ranks of one role have neighbours of the same roles and
//            cross links that are loaded alike, so simulating representatives changes no time.

#include <cstdint>
#include <vector>

#include "sim/plan/plan.h"

namespace lockstep {

struct Roles {
  std::vector<std::uint32_t> role_of;  // by rank
  std::vector<Rank> representatives;   // by role, ascending
  std::vector<std::int64_t> members;   // by role: how many ranks it has

  Rank representative(Rank rank) const { return representatives[role_of[rank.index]]; }
  std::size_t ranks() const { return role_of.size(); }
  bool operator==(const Roles&) const = default;
};

// Every rank its own role.
Roles unfolded_roles(std::size_t ranks);
// Roles from a colour per rank: equal colours, equal roles.
Roles roles_from_colours(const std::vector<std::uint32_t>& colours);

}  // namespace lockstep
