// Max-min fair shares: the algebra stands above each case.

#include "sim/network/fair_share.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/base/check.h"
#include "tests/support/property.h"

namespace lockstep::fair_share_test {

struct FlowUse {
  std::vector<ShareUse> uses;
};

std::vector<std::int64_t> shares(const std::vector<std::int64_t>& capacities,
                                 const std::vector<FlowUse>& flows) {
  FairShareProblem problem;
  for (const std::int64_t capacity : capacities) problem.add_link(capacity);
  for (const FlowUse& flow : flows) problem.add_flow(flow.uses);
  const auto rates = problem.solve();
  return {rates.begin(), rates.end()};
}

FlowUse over(std::initializer_list<std::uint32_t> links) {
  FlowUse flow;
  for (const std::uint32_t link : links) flow.uses.push_back({link, 1});
  return flow;
}

// One flow alone: rate = min(C0, C1).
TEST_CASE("A flow alone goes as fast as its narrowest link") {
  CHECK(shares({1000, 400}, {over({0, 1})}) == std::vector<std::int64_t>{std::min(1000, 400)});
}

// C = r0 + r1 and r0 = r1, so r = C / 2.
TEST_CASE("Two flows on one link get half each") {
  CHECK(shares({1000}, {over({0}), over({0})}) == std::vector<std::int64_t>{1000 / 2, 1000 / 2});
}

// floor(1000 / 3) = 333; the link keeps 1000 - 3 x 333 = 1 unit that nobody gets.
TEST_CASE("Shares round down") {
  CHECK(shares({1000}, {over({0}), over({0}), over({0})}) ==
        std::vector<std::int64_t>{1000 / 3, 1000 / 3, 1000 / 3});
}

// The parking lot: a long flow over links 0, 1, 2 meets one short flow on each. Link 1 is the narrowest:
// long = short1 = C1 / 2; what is left on the others is theirs: short0 = C0 - long, short2 = C2 - long.
TEST_CASE("In a parking lot the long flow is held by the narrowest link and the others take the rest") {
  const std::int64_t c0 = 1000;
  const std::int64_t c1 = 600;
  const std::int64_t c2 = 900;
  const std::int64_t held = c1 / 2;
  CHECK(shares({c0, c1, c2}, {over({0, 1, 2}), over({0}), over({1}), over({2})}) ==
        std::vector<std::int64_t>{held, c0 - held, held, c2 - held});
}

// Flow 0 alone is held to 100 by link 0. On link 1 flows 0, 1, 2 offer C/3 = 300 at first; after flow 0 is
// frozen at 100 the other two share the rest: (900 - 100) / 2.
TEST_CASE("What a slow flow leaves is shared by the others") {
  CHECK(shares({100, 900}, {over({0, 1}), over({1}), over({1})}) ==
        std::vector<std::int64_t>{100, (900 - 100) / 2, (900 - 100) / 2});
}

// A flow of multiplicity m counts m times: C = m r0 + r1 and r0 = r1, so r = C / (m + 1).
TEST_CASE("A flow of multiplicity m takes m shares of a link") {
  const std::uint32_t m = 3;
  CHECK(shares({1000}, {{{{0, m}}}, over({0})}) == std::vector<std::int64_t>{1000 / (m + 1), 1000 / (m + 1)});
}

// A flow may cross its links unequally often: link 0 allows C0 / 2, link 1 allows C1 / 5.
TEST_CASE("Multiplicities differ from link to link") {
  CHECK(shares({1000, 2000}, {{{{0, 2}, {1, 5}}}}) ==
        std::vector<std::int64_t>{std::min(1000 / 2, 2000 / 5)});
}

// A flow of weight w goes at w times its offer and takes w shares: C = w o + o, so o = C / (w + 1).
TEST_CASE("Weights divide a link in their proportion") {
  FairShareProblem problem;
  const ShareUse use{problem.add_link(1000), 1};
  const std::int64_t w = 3;
  problem.add_flow(std::span(&use, 1), w);
  problem.add_flow(std::span(&use, 1));
  const auto rates = problem.solve();
  CHECK(rates[0] == 1000 / (w + 1) * w);
  CHECK(rates[1] == 1000 / (w + 1));
}

// Weight and multiplicity together: the load is rate x multiplicity, C = w o m + o.
TEST_CASE("A weighted flow of multiplicity m loads a link m times its rate") {
  FairShareProblem problem;
  const std::uint32_t link = problem.add_link(1300);
  const std::int64_t w = 3;
  const std::uint32_t m = 4;
  const ShareUse heavy{link, m};
  const ShareUse light{link, 1};
  problem.add_flow(std::span(&heavy, 1), w);
  problem.add_flow(std::span(&light, 1));
  const auto rates = problem.solve();
  CHECK(rates[0] == 1300 / (w * m + 1) * w);
  CHECK(rates[1] == 1300 / (w * m + 1));
}

// 3 units among 3 flows are 1 each; 2 would be 0 each, and 1 each would be more than there is.
TEST_CASE("A link with less than one unit for each share is told, and not shared") {
  CHECK(shares({3}, {over({0}), over({0}), over({0})}) == std::vector<std::int64_t>{1, 1, 1});
  CHECK_THROWS_AS(shares({2}, {over({0}), over({0}), over({0})}), InternalError);
  FairShareProblem problem;
  problem.add_link(100);
  const ShareUse use{problem.add_link(11), 4};
  problem.add_flow(std::span(&use, 1), 2);
  CHECK(!problem.starved_link());
  problem.add_flow(std::span(&use, 1));
  CHECK(problem.starved_link() == 1u);
  CHECK(problem.shares_on(1) == 4 * 2 + 4);
}

// Rounding down leaves what it takes to those that are frozen later, so that none of them falls below.
TEST_CASE("Whatever flows there are, those that get a unit first get no less at last") {
  CHECK(shares({5, 7}, {over({0}), over({0, 1}), over({0, 1}), over({1})}) ==
        std::vector<std::int64_t>{1, 1, 1, 5});
}

TEST_CASE("A flow that crosses no link is a mistake") {
  FairShareProblem problem;
  problem.add_link(10);
  CHECK_THROWS_AS(problem.add_flow({}), InternalError);
}

TEST_CASE("A cleared problem remembers nothing") {
  FairShareProblem problem;
  const ShareUse use{problem.add_link(1000), 1};
  problem.add_flow(std::span(&use, 1));
  problem.add_flow(std::span(&use, 1));
  problem.solve();
  problem.clear();
  const ShareUse again{problem.add_link(700), 1};
  problem.add_flow(std::span(&again, 1));
  CHECK(problem.solve()[0] == 700);
}

// Random instances: up to 6 links of 10^3 .. 10^12 and up to 8 flows over any of them.
struct Instance {
  std::vector<std::int64_t> capacities;
  std::vector<FlowUse> flows;
};

Instance drawn_instance() {
  Instance instance;
  const int links = *rc::gen::inRange(1, 7);
  for (int link = 0; link < links; ++link) {
    const std::int64_t scale = *rc::gen::element<std::int64_t>(1, 1'000, 1'000'000, 1'000'000'000);
    instance.capacities.push_back(*rc::gen::inRange<std::int64_t>(1'000, 10'000) * scale);
  }
  const int flows = *rc::gen::inRange(1, 9);
  for (int flow = 0; flow < flows; ++flow) {
    FlowUse use;
    for (int link = 0; link < links; ++link)
      if (*rc::gen::arbitrary<bool>())
        use.uses.push_back({static_cast<std::uint32_t>(link), *rc::gen::inRange<std::uint32_t>(1, 4)});
    if (use.uses.empty())
      use.uses.push_back({0, 1});
    instance.flows.push_back(use);
  }
  return instance;
}

std::vector<std::int64_t> loads(const Instance& instance, const std::vector<std::int64_t>& rates) {
  std::vector<std::int64_t> load(instance.capacities.size());
  for (std::size_t flow = 0; flow < rates.size(); ++flow)
    for (const ShareUse& use : instance.flows[flow].uses) load[use.link] += rates[flow] * use.multiplicity;
  return load;
}

TEST_CASE("No link carries more than its capacity") {
  check_for_all(400, "feasible", [] {
    const Instance instance = drawn_instance();
    const auto load = loads(instance, shares(instance.capacities, instance.flows));
    for (std::size_t link = 0; link < load.size(); ++link) RC_ASSERT(load[link] <= instance.capacities[link]);
  });
}

// The max-min property (Bertsekas and Gallager 6.5.2): every flow has a bottleneck, a link that is full and
// on which no flow is faster. Full up to the rounding: less than one unit per share that crosses it is left.
TEST_CASE("Every flow has a full link on which no other flow is faster") {
  check_for_all(400, "max-min", [] {
    const Instance instance = drawn_instance();
    const auto rates = shares(instance.capacities, instance.flows);
    const auto load = loads(instance, rates);
    std::vector<std::int64_t> fastest(load.size());
    std::vector<std::int64_t> crossing(load.size());
    for (std::size_t flow = 0; flow < rates.size(); ++flow)
      for (const ShareUse& use : instance.flows[flow].uses) {
        fastest[use.link] = std::max(fastest[use.link], rates[flow]);
        crossing[use.link] += use.multiplicity;
      }
    for (std::size_t flow = 0; flow < rates.size(); ++flow) {
      const auto& uses = instance.flows[flow].uses;
      RC_ASSERT(std::any_of(uses.begin(), uses.end(), [&](const ShareUse& use) {
        return instance.capacities[use.link] - load[use.link] < crossing[use.link] &&
               rates[flow] == fastest[use.link];
      }));
    }
  });
}

// Folding: a flow of multiplicity k m on every link stands for k equal flows of multiplicity m.
TEST_CASE("Folding k equal flows into one changes no rate by a single unit") {
  check_for_all(400, "fold", [] {
    const Instance instance = drawn_instance();
    std::vector<FlowUse> folded;
    std::vector<FlowUse> unfolded;
    std::vector<std::size_t> stands_for;
    for (const FlowUse& flow : instance.flows) {
      const auto copies = *rc::gen::inRange<std::uint32_t>(1, 6);
      FlowUse one = flow;
      for (ShareUse& use : one.uses) use.multiplicity *= copies;
      for (std::uint32_t copy = 0; copy < copies; ++copy) {
        unfolded.push_back(flow);
        stands_for.push_back(folded.size());
      }
      folded.push_back(one);
    }
    const auto few = shares(instance.capacities, folded);
    const auto many = shares(instance.capacities, unfolded);
    for (std::size_t flow = 0; flow < many.size(); ++flow) RC_ASSERT(many[flow] == few[stands_for[flow]]);
  });
}

TEST_CASE("Rates do not depend on the order of flows and links") {
  check_for_all(300, "order", [] {
    const Instance instance = drawn_instance();
    Instance reversed;
    reversed.capacities.assign(instance.capacities.rbegin(), instance.capacities.rend());
    const auto links = static_cast<std::uint32_t>(instance.capacities.size());
    for (auto flow = instance.flows.rbegin(); flow != instance.flows.rend(); ++flow) {
      FlowUse turned = *flow;
      for (ShareUse& use : turned.uses) use.link = links - 1 - use.link;
      reversed.flows.push_back(turned);
    }
    auto rates = shares(reversed.capacities, reversed.flows);
    std::reverse(rates.begin(), rates.end());
    RC_ASSERT(rates == shares(instance.capacities, instance.flows));
  });
}

}  // namespace lockstep::fair_share_test
