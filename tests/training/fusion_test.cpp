#include "sim/training/fusion.h"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/support/property.h"

namespace lockstep::fusion_test {

Duration ms(std::int64_t count) {
  return Duration::milliseconds(count);
}

// Announced when computed, 10 bytes each unless said otherwise.
AnnouncedGradient at(Duration ready, std::int64_t bytes = 10, std::uint32_t type = 4) {
  return {.announced = ready, .ready = ready, .bytes = Bytes{bytes}, .type = type};
}

std::vector<FusedGroup> fused(const std::vector<AnnouncedGradient>& gradients, const FusionRule& rule) {
  std::vector<std::uint32_t> order(gradients.size());
  std::iota(order.begin(), order.end(), 0u);
  return fuse(gradients, order, rule);
}

using Group = std::vector<std::uint32_t>;

// Cycles of 10 ms from 100 + 10/2 on: 105, 115, 125. What is announced at 100 and 105 goes at 105, at 106 and
// 115 at 115, at 125 at 125; everybody knows 2 ms later.
TEST_CASE("The thread first wakes half a cycle after the first gradient, and then every cycle") {
  const auto groups =
      fused({at(ms(100)), at(ms(105)), at(ms(106)), at(ms(115)), at(ms(125))},
            {.threshold = Bytes{1000}, .cycle = ms(10), .negotiation = ms(2), .blocked_at = {}});
  CHECK(groups == std::vector<FusedGroup>{{{0, 1}, ms(107)}, {{2, 3}, ms(117)}, {{4}, ms(127)}});
}

// It woke at 105, so after the silence it wakes at 105 + 9 x 10.
TEST_CASE("Cycles that find nothing keep the beat") {
  const auto groups =
      fused({at(ms(100)), at(ms(186))},
            {.threshold = Bytes{1000}, .cycle = ms(10), .negotiation = ms(2), .blocked_at = {}});
  CHECK(groups[1].agreed == ms(195) + ms(2));
}

TEST_CASE("Where negotiating takes longer than a cycle, it sets the beat") {
  const auto groups =
      fused({at(ms(100)), at(ms(101)), at(ms(110))},
            {.threshold = Bytes{1000}, .cycle = ms(0), .negotiation = ms(7), .blocked_at = {}});
  // 100, 107, 114, each known 7 ms later.
  CHECK(groups == std::vector<FusedGroup>{{{0}, ms(107)}, {{1}, ms(114)}, {{2}, ms(121)}});
}

TEST_CASE("A group closes before it exceeds the threshold, unless a single gradient does") {
  const std::vector<AnnouncedGradient> gradients{at(ms(1), 40), at(ms(1), 60), at(ms(1), 1), at(ms(1), 500),
                                                 at(ms(1), 7)};
  const auto groups =
      fused(gradients, {.threshold = Bytes{100}, .cycle = ms(10), .negotiation = {}, .blocked_at = {}});
  REQUIRE(groups.size() == 4);
  CHECK(groups[0].gradients == Group{0, 1});
  CHECK(groups[1].gradients == Group{2});
  CHECK(groups[2].gradients == Group{3});
  CHECK(groups[3].gradients == Group{4});
}

TEST_CASE("A threshold of zero sends every gradient by itself") {
  const auto groups = fused({at(ms(1)), at(ms(1)), at(ms(1))},
                            {.threshold = {}, .cycle = ms(10), .negotiation = {}, .blocked_at = {}});
  CHECK(groups.size() == 3);
}

// 30 and the next 30 of the same type fit into 100; what is passed over, 40, would have fitted too. In the
// second queue it would not: 30 + 80 > 100, so the group closes there.
TEST_CASE("Gradients of another type are passed over only while they would have fitted") {
  const FusionRule rule{.threshold = Bytes{100}, .cycle = ms(10), .negotiation = {}, .blocked_at = {}};
  const auto near = fused({at(ms(1), 30, 4), at(ms(1), 40, 2), at(ms(1), 30, 4)}, rule);
  REQUIRE(near.size() == 2);
  CHECK(near[0].gradients == Group{0, 2});
  CHECK(near[1].gradients == Group{1});
  const auto far = fused({at(ms(1), 30, 4), at(ms(1), 80, 2), at(ms(1), 30, 4)}, rule);
  REQUIRE(far.size() == 3);
}

// All are announced by 5, the first waking; the first group's last gradient is computed at 90, so what is
// announced meanwhile is taken at 90, not at 15.
TEST_CASE("The thread waits for the data of what it sends before it wakes again") {
  std::vector<AnnouncedGradient> gradients(3, at(ms(0)));
  gradients[1].ready = ms(90);
  gradients[2] = {.announced = ms(12), .ready = ms(95), .bytes = Bytes{10}, .type = 4};
  const auto groups =
      fused(gradients, {.threshold = Bytes{1000}, .cycle = ms(10), .negotiation = ms(1), .blocked_at = {}});
  CHECK(groups == std::vector<FusedGroup>{{{0, 1}, ms(6)}, {{2}, ms(91)}});
}

// 10 bytes at 1000 a second keep it for 10 ms after 5 + 1: it wakes at 16.
TEST_CASE("A thread that moves the bytes itself wakes when they are moved") {
  const auto groups =
      fused({at(ms(0)), at(ms(6))},
            {.threshold = Bytes{1000}, .cycle = ms(10), .negotiation = ms(1), .blocked_at = Bandwidth{1000}});
  CHECK(groups == std::vector<FusedGroup>{{{0}, ms(6)}, {{1}, ms(17)}});
}

TEST_CASE("Every gradient is sent once, in groups no larger than the threshold, and in time") {
  check_for_all(500, "fusion", [] {
    std::vector<AnnouncedGradient> gradients;
    const int count = *rc::gen::inRange(1, 60);
    for (int index = 0; index < count; ++index) {
      const auto announced = Duration::microseconds(*rc::gen::inRange(0, 5000));
      gradients.push_back({.announced = announced,
                           .ready = announced + Duration::microseconds(*rc::gen::inRange(0, 5000)),
                           .bytes = Bytes{*rc::gen::inRange(1, 100)},
                           .type = *rc::gen::element(2u, 4u)});
    }
    const FusionRule rule{.threshold = Bytes{*rc::gen::inRange(0, 300)},
                          .cycle = Duration::microseconds(*rc::gen::inRange(0, 900)),
                          .negotiation = Duration::microseconds(*rc::gen::inRange(0, 90)),
                          .blocked_at = {}};
    std::vector<int> sent(gradients.size());
    Duration before;
    for (const FusedGroup& group : fused(gradients, rule)) {
      Bytes bytes;
      for (const std::uint32_t gradient : group.gradients) {
        ++sent[gradient];
        bytes += gradients[gradient].bytes;
        RC_ASSERT(group.agreed >= gradients[gradient].announced + rule.negotiation);
        RC_ASSERT(gradients[gradient].type == gradients[group.gradients.front()].type);
      }
      RC_ASSERT(group.gradients.size() == 1 || bytes <= rule.threshold);
      RC_ASSERT(group.agreed >= before);
      before = group.agreed;
    }
    for (const int times : sent) RC_ASSERT(times == 1);
  });
}

}  // namespace lockstep::fusion_test
