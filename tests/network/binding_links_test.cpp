// Links that are left out change no rate.

#include "sim/network/binding_links.h"

#include <doctest/doctest.h>

#include "sim/base/random.h"
#include "sim/network/fair_share.h"

namespace lockstep::network_binding_links_test {

using Uses = std::vector<LinkUse>;

LinkUse crossing(std::uint32_t link, std::uint32_t multiplicity = 1) {
  return {.link = LinkId{link}, .multiplicity = multiplicity};
}

RouteTable routes_of(const std::vector<Uses>& all) {
  RouteTable routes;
  for (const Uses& uses : all) routes.add(uses, Duration::zero());
  return routes;
}

std::vector<std::int64_t> binding(const std::vector<std::int64_t>& capacities, const std::vector<Uses>& all) {
  const std::vector<Bandwidth> given(capacities.begin(), capacities.end());
  std::vector<std::int64_t> found;
  for (const BindingLink& link : find_binding_links(given, routes_of(all)))
    found.push_back(link.binds ? link.capacity.count() : 0);
  return found;
}

TEST_CASE("The first of alike links stands for the narrowest") {
  CHECK(binding({30, 10, 20}, {{crossing(0), crossing(1), crossing(2)}}) ==
        std::vector<std::int64_t>{10, 0, 0});
}

TEST_CASE("The first is the one that a route crosses first") {
  CHECK(binding({30, 10, 20}, {{crossing(2), crossing(1), crossing(0)}}) ==
        std::vector<std::int64_t>{0, 0, 10});
}

TEST_CASE("Links that a route crosses unequally often stand for themselves") {
  CHECK(binding({30, 10}, {{crossing(0, 4), crossing(1)}}) == std::vector<std::int64_t>{30, 10});
}

TEST_CASE("A link that some route crosses alone stands for itself, also where it is but reserved") {
  CHECK(binding({30, 10}, {{crossing(0), crossing(1)}, {crossing(0)}}) == std::vector<std::int64_t>{30, 10});
  CHECK(binding({30, 10}, {{crossing(0), crossing(1)}, {crossing(0, 0)}}) ==
        std::vector<std::int64_t>{30, 10});
}

TEST_CASE("A link that nobody crosses binds nobody") {
  CHECK(binding({30, 10}, {{crossing(1)}}) == std::vector<std::int64_t>{0, 10});
}

std::vector<std::int64_t> fair_rates(const std::vector<std::int64_t>& capacities,
                                     const std::vector<Uses>& all) {
  FairShareProblem problem;
  for (const std::int64_t capacity : capacities) problem.add_link(capacity);
  for (const Uses& uses : all) {
    std::vector<ShareUse> shares;
    for (const LinkUse& use : uses)
      if (capacities[use.link.index] > 0)
        shares.push_back({use.link.index, use.multiplicity});
    problem.add_flow(shares);
  }
  const auto rates = problem.solve();
  return {rates.begin(), rates.end()};
}

TEST_CASE("Rates are those of all links, whatever routes cross") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::uint64_t drawn = 0;
    const auto draw = [&](std::uint64_t below) {
      return random_below(keyed_random(seed, 0, drawn++), below);
    };
    const std::size_t links = 1 + draw(8);
    std::vector<std::int64_t> capacities;
    for (std::size_t link = 0; link < links; ++link)
      capacities.push_back(static_cast<std::int64_t>(1'000 + draw(5) * 333));
    std::vector<Uses> all(1 + draw(5));
    for (Uses& uses : all) {
      for (std::uint32_t link = 0; link < links; ++link)
        if (draw(3) > 0)
          uses.push_back(crossing(link, static_cast<std::uint32_t>(1 + draw(2))));
      if (uses.empty())
        uses.push_back(crossing(0));
    }
    INFO("seed ", seed);
    CHECK(fair_rates(binding(capacities, all), all) == fair_rates(capacities, all));
  }
}

}  // namespace lockstep::network_binding_links_test
