#include "sim/report/breakdown.h"

#include <doctest/doctest.h>

#include <set>
#include <string_view>

#include "sim/run/time_account.h"

namespace lockstep::breakdown_test {

TEST_CASE("every category is charged to one part, and what no category is charged to is waiting") {
  std::multiset<std::string_view> charged;
  for (std::size_t category = 0; category < category_count; ++category) {
    const auto at_hand = static_cast<Category>(category);
    CHECK(part_of(at_hand).category == at_hand);
    charged.insert(part_of(at_hand).key);
  }
  charged.insert(straggler_part().key);
  for (const TimePart& part : time_parts) CHECK(charged.count(part.key) == 1);
  CHECK(charged.size() == time_parts.size());
}

TEST_CASE("no two parts look alike or share their time") {
  Breakdown breakdown;
  std::set<std::string_view> glyphs;
  std::set<std::string_view> terminal_colours;
  std::set<std::string_view> page_colours;
  for (const TimePart& part : time_parts) {
    CHECK(breakdown.*part.time == Duration::zero());
    breakdown.*part.time = Duration::seconds(1);
    glyphs.insert(part.glyph);
    terminal_colours.insert(part.terminal_colour);
    page_colours.insert(part.page_colour);
  }
  CHECK(glyphs.size() == time_parts.size());
  CHECK(terminal_colours.size() == time_parts.size());
  CHECK(page_colours.size() == time_parts.size());
}

TEST_CASE("a mean breakdown adds up to the mean iteration, whatever each part leaves over") {
  // Parts of 1 ps over three iterations: none is a whole picosecond, all together are.
  TimeAccount account;
  for (Duration& part : account.by_category) part = Duration::picoseconds(1);
  account.straggler_wait = Duration::picoseconds(2);
  const Breakdown mean = mean_breakdown(account, 3);
  CHECK(sum(mean) == Duration::picoseconds((static_cast<std::int64_t>(category_count) + 2) / 3));
  for (const TimePart& part : time_parts) CHECK(mean.*part.time <= Duration::picoseconds(1));
}

TEST_CASE("a key reads as words") {
  CHECK(words("exposed_communication") == "exposed communication");
  CHECK(words("forward") == "forward");
}

}  // namespace lockstep::breakdown_test
