// Who shares with whom, on a handful of links.

#include "sim/network/crossings.h"

#include <doctest/doctest.h>

#include "sim/base/check.h"

namespace lockstep::network_crossings_test {

using Numbers = std::vector<std::uint32_t>;

Numbers numbers(std::span<const std::uint32_t> span) {
  return {span.begin(), span.end()};
}

// Slot i is on links i and i + 1 of four; slot 3 on the last two as well, twice over and of weight 5.
class Line {
 public:
  Line() {
    for (std::uint32_t slot = 0; slot < 3; ++slot) add(slot, 1, 1);
    add(2, 2, 5);
  }
  Crossings& operator*() { return crossings_; }
  Crossings* operator->() { return &crossings_; }

 private:
  void add(std::uint32_t link, std::uint32_t multiplicity, std::int64_t weight) {
    const LinkUse uses[] = {{LinkId{link}, multiplicity}, {LinkId{link + 1}, multiplicity}};
    crossings_.add_slot(uses, weight);
  }
  std::vector<BindingLink> links_ = std::vector<BindingLink>(4, {.binds = true, .capacity = {}});
  Crossings crossings_{links_};
};

TEST_CASE("A slot alone is found without its links, and once however often it was touched") {
  Line line;
  line->enter(0);
  line->touch(1);
  REQUIRE(line->find_touched());
  CHECK(numbers(line->slots()) == Numbers{0});
  CHECK(line->links().empty());
  CHECK_FALSE(line->find_touched());
  CHECK_FALSE(line->has_touched());
}

TEST_CASE("A component is all that is connected, from the link that was touched") {
  Line line;
  for (std::uint32_t slot = 0; slot < 3; ++slot) line->enter(slot);
  REQUIRE(line->find_touched());
  CHECK(numbers(line->slots()) == Numbers{0, 1, 2});
  CHECK(numbers(line->links()) == Numbers{0, 1, 2, 3});
  for (std::uint32_t link = 0; link < 4; ++link) CHECK(line->place(link) == link);
  CHECK_FALSE(line->find_touched());
}

TEST_CASE("What leaves parts those that it connected") {
  Line line;
  for (std::uint32_t slot = 0; slot < 3; ++slot) line->enter(slot);
  line->forget_touched();
  line->leave(1);
  REQUIRE(line->find_touched());
  CHECK(numbers(line->slots()) == Numbers{0});
  REQUIRE(line->find_touched());
  CHECK(numbers(line->slots()) == Numbers{2});
  CHECK_FALSE(line->find_touched());
}

TEST_CASE("The shares of a link are multiplicity times weight of all that cross it") {
  Line line;
  line->enter(2);
  line->enter(3);
  CHECK(line->shares(2) == 1 + 2 * 5);
  line->leave(2);
  CHECK(line->shares(2) == 2 * 5);
}

TEST_CASE("Links that bind nobody are not crossed, and whoever crosses nothing is a mistake") {
  const std::vector<BindingLink> links{{.binds = false, .capacity = {}}, {.binds = true, .capacity = {}}};
  Crossings crossings(links);
  const LinkUse both[] = {{LinkId{0}}, {LinkId{1}}};
  crossings.add_slot(both, 1);
  CHECK(crossings.of(0).size() == 1);
  CHECK(crossings.first_link(0) == 1);
  CHECK_THROWS_AS(crossings.add_slot(std::span(both, 1), 1), InternalError);
}

}  // namespace lockstep::network_crossings_test
