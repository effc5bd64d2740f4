#include "sim/plan/roles.h"

#include <numeric>
#include <unordered_map>

namespace lockstep {

Roles unfolded_roles(std::size_t ranks) {
  std::vector<std::uint32_t> colours(ranks);
  std::iota(colours.begin(), colours.end(), 0u);
  return roles_from_colours(colours);
}

Roles roles_from_colours(const std::vector<std::uint32_t>& colours) {
  Roles roles;
  roles.role_of.reserve(colours.size());
  std::unordered_map<std::uint32_t, std::uint32_t> role_of_colour;
  for (std::uint32_t rank = 0; rank < colours.size(); ++rank) {
    const auto next = static_cast<std::uint32_t>(roles.representatives.size());
    const auto [found, is_new] = role_of_colour.emplace(colours[rank], next);
    if (is_new) {
      roles.representatives.push_back(Rank{rank});
      roles.members.push_back(0);
    }
    roles.role_of.push_back(found->second);
    ++roles.members[found->second];
  }
  return roles;
}

}  // namespace lockstep
