// Chains of which each op waits for the one before it, for each reason there is to wait.

#include "sim/report/critical_path.h"

#include <doctest/doctest.h>

#include "sim/engine/executor.h"
#include "sim/plan/plan_writer.h"

namespace lockstep::critical_path_test {

Duration ns(std::int64_t count) {
  return Duration::nanoseconds(count);
}

// Delays of two ranks; the first rank's compute lane is the one that ends last.
class Story {
 public:
  Story() : roles_(unfolded_roles(2)), writer_(roles_) {
    compute = writer_.lane({.rank = Rank{0}});
    other = writer_.lane({.rank = Rank{1}});
  }
  PlanWriter* operator->() { return &writer_; }

  OpId delay(const char* name, LaneId lane, std::int64_t length, std::span<const OpId> after = {}) {
    writer_.section(name, Category::other);
    return writer_.delay(lane, ns(length), after);
  }

  // From `start` to `end`, as the iteration of the first rank that begins with op `first`.
  std::vector<PathItem> path(std::int64_t start, std::int64_t end, OpId first = OpId{0}) {
    Run run;
    const OpId last{static_cast<std::uint32_t>(writer_.size())};
    run.plan = std::move(writer_).finish();
    run.timeline = lockstep::run(run.plan, {}, run.routes);
    run.lanes = {.compute = {compute}, .communication = {other}};
    run.iterations = {iteration(OpId{0}, first), iteration(first, last)};
    const RankView view(run, 0);
    CHECK(view.start_of(1) == Time{} + ns(start));
    CHECK(view.end_of(1) == Time{} + ns(end));
    return find_critical_path(view);
  }

  LaneId compute{};
  LaneId other{};

 private:
  static IterationOps iteration(OpId first, OpId last) {
    return {.first = first, .last = last, .communications = {}, .memory = {}, .watched = {}};
  }

  Roles roles_;
  PlanWriter writer_;
};

struct Piece {
  std::string what;
  std::int64_t start, end;
};

void check_path(const std::vector<PathItem>& path, const std::vector<Piece>& expected) {
  REQUIRE(path.size() == expected.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    CHECK(path[i].what == expected[i].what);
    CHECK(path[i].start == ns(expected[i].start));
    CHECK(path[i].end == ns(expected[i].end));
  }
}

TEST_CASE("on one lane each op waits for the one before it") {
  Story story;
  story.delay("forward", story.compute, 3);
  story.delay("backward", story.compute, 5);
  check_path(story.path(0, 8), {{"forward", 0, 3}, {"backward", 3, 8}});
}

TEST_CASE("neighbours of one section are one piece") {
  Story story;
  const OpId first = story.delay("copy", story.compute, 3);
  story->delay(story.other, ns(4), After{first});
  story.delay("end", story.compute, 1, After{OpId{1}});
  check_path(story.path(0, 8), {{"copy", 0, 7}, {"end", 7, 8}});
}

// The own lane is free at 2; the other rank's op ends at 7.
TEST_CASE("of two that it depends on an op waited for the one that ended last") {
  Story story;
  story.delay("own", story.compute, 2);
  const OpId slow = story.delay("slow", story.other, 7);
  story.delay("end", story.compute, 1, After{slow});
  check_path(story.path(0, 8), {{"slow", 0, 7}, {"end", 7, 8}});
}

TEST_CASE("and not for one that was over before") {
  Story story;
  story.delay("own", story.compute, 7);
  const OpId quick = story.delay("quick", story.other, 2);
  story.delay("end", story.compute, 1, After{quick});
  check_path(story.path(0, 8), {{"own", 0, 7}, {"end", 7, 8}});
}

TEST_CASE("pieces count from the start of the iteration, which cuts the one that it falls into") {
  Story story;
  story.delay("before", story.compute, 3);
  const OpId forward = story.delay("forward", story.other, 5);
  story.delay("backward", story.compute, 5, After{forward});
  check_path(story.path(3, 10, forward), {{"forward", 0, 2}, {"backward", 2, 7}});
}

// Two slots, taken from 0 to 4 and from 0 to 9; the third had to wait for the first of them to be given back.
TEST_CASE("where all slots are taken the one that is given back first is what was waited for") {
  Story story;
  const LaneId pool = story->lane({.rank = Rank{0}, .kind = LaneKind::communication, .slots = 2});
  const auto send = [&](const char* name, std::int64_t length) {
    story->section(name, Category::communication);
    const OpId taken = story->take(pool, no_path);
    const OpId sent = story->delay(story->new_channel_lane(Rank{0}), ns(length), After{taken});
    return story->give_back(pool, no_path, After{sent});
  };
  send("short", 4);
  send("long", 9);
  const OpId third = send("third", 6);
  story.delay("end", story.compute, 1, After{third});
  check_path(story.path(0, 11), {{"short", 0, 4}, {"third", 4, 10}, {"end", 10, 11}});
}

// Written first and ready last: at 3 the other has the lane, until 8.
TEST_CASE("where order is decided while running, what held the lane is what was waited for") {
  Story story;
  const LaneId queue =
      story->lane({.rank = Rank{0}, .kind = LaneKind::copy, .discipline = Discipline::when_ready});
  const OpId ready = story.delay("ready", story.other, 3);
  const OpId late = story.delay("late", queue, 2, After{ready});
  story.delay("early", queue, 8);
  story.delay("end", story.compute, 1, After{late});
  check_path(story.path(0, 11), {{"early", 0, 8}, {"late", 8, 10}, {"end", 10, 11}});
}

}  // namespace lockstep::critical_path_test
