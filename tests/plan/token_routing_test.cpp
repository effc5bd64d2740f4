// Shares of tokens, counted by hand.

#include "sim/plan/token_routing.h"

#include <doctest/doctest.h>

#include <cmath>

namespace lockstep::token_routing_test {
namespace {

Ratio about(double value) {
  return Ratio::parts_per_million(std::llround(1e6 * value));
}

}  // namespace

// Of 6 pairs of 4 experts one lies in the other half.
TEST_CASE("a part is missed as often as all experts are drawn beside it") {
  const TokenRouting routing{.experts = 4, .per_token = 2};
  CHECK(visited_share(routing, 1) == Ratio::one());
  CHECK(visited_share(routing, 2) == about(5.0 / 6));
  CHECK(visited_share(routing, 4) == about(2.0 / 4));
}

// Two of four groups are drawn, then two of their four experts: of halves with two groups each, one in six draws of
// groups hits only the other, one only this one and four a group of each, whose two experts are missed once in six.
TEST_CASE("groups are drawn first, their experts then") {
  const TokenRouting routing{.experts = 8, .per_token = 2, .groups = 4, .groups_per_token = 2};
  CHECK(visited_share(routing, 1) == about(1));
  CHECK(visited_share(routing, 2) == about(1.0 / 6 + 4.0 / 6 * 5 / 6));
  CHECK(visited_share(routing, 4) == about(2.0 / 4 * 5 / 6));
  CHECK(visited_share(routing, 8) == about(2.0 / 8));
}

TEST_CASE("more parts are visited by no more tokens each, and by as many copies in all") {
  for (const std::int64_t groups : {1, 8})
    for (const std::int64_t drawn : {1, 2, 8}) {
      if (drawn > groups)
        continue;
      const TokenRouting routing{.experts = 256, .per_token = 8, .groups = groups, .groups_per_token = drawn};
      Ratio before = Ratio::one();
      for (std::int64_t parts = 2; parts <= 256; parts *= 2) {
        CAPTURE(parts);
        const Ratio share = visited_share(routing, parts);
        CHECK(share <= before);
        CHECK(share * parts <= Ratio::one() * 8);
        before = share;
      }
      CHECK(before == about(8.0 / 256));
    }
}

}  // namespace lockstep::token_routing_test
