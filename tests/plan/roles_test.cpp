#include "sim/plan/roles.h"

#include <doctest/doctest.h>

#include <numeric>

namespace lockstep::plan_roles_test {

TEST_CASE("Without folding every rank is its own role") {
  const Roles roles = unfolded_roles(3);
  CHECK(roles.representatives == std::vector<Rank>{Rank{0}, Rank{1}, Rank{2}});
  CHECK(roles.members == std::vector<std::int64_t>{1, 1, 1});
  CHECK(roles.representative(Rank{2}) == Rank{2});
}

TEST_CASE("Equal colours are one role, stood for by its lowest rank") {
  const Roles roles = roles_from_colours({7, 3, 7, 7, 3});
  CHECK(roles.ranks() == 5);
  CHECK(roles.representatives == std::vector<Rank>{Rank{0}, Rank{1}});
  CHECK(roles.representative(Rank{3}) == Rank{0});
  CHECK(roles.representative(Rank{4}) == Rank{1});
  CHECK(roles.members == std::vector<std::int64_t>{3, 2});
}

TEST_CASE("The roles' members are all the ranks") {
  const Roles roles = roles_from_colours({1, 2, 3, 1, 2, 1});
  CHECK(std::accumulate(roles.members.begin(), roles.members.end(), std::int64_t{0}) == 6);
}

}  // namespace lockstep::plan_roles_test
