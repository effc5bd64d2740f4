#include "sim/plan/plan_size.h"

#include <doctest/doctest.h>

#include "sim/plan/plan_writer.h"

namespace lockstep::plan_size_test {

// A lane and a section with three ops, of which each but the first waits for the one before it by name as
// well.
void write_three(PlanWriter& writer) {
  const LaneId lane = writer.lane({.rank = Rank{0}});
  writer.section("three", Category::other);
  const OpId first = writer.delay(lane, Duration::microseconds(1));
  const OpId second = writer.delay(lane, Duration::microseconds(1), After{first});
  writer.delay(lane, Duration::microseconds(1), After{second});
}

Traffic pairs(std::uint32_t count) {
  Traffic traffic;
  for (std::uint32_t pair = 0; pair < count; ++pair) traffic.flows.push_back({Rank{0}, Rank{1}});
  traffic.rounds = {traffic.flows};
  return traffic;
}

TEST_CASE("A finished plan is as large as its writer counted") {
  const Roles roles = unfolded_roles(2);
  PlanWriter writer(roles);
  write_three(writer);
  writer.traffic("pairs", [] { return pairs(5); });
  const PlanSize counted = writer.counted();
  CHECK(counted.ops == 3);
  CHECK(counted.dependencies == 2);
  CHECK(counted.lanes == 1);
  CHECK(counted.sections == 1);
  CHECK(counted.names == 1);
  CHECK(counted.flows == 2 * 5);  // in all, and by round
  const PlanSize size = size_of(std::move(writer).finish());
  CHECK(size.bytes() == counted.bytes());
  CHECK(size.flows == counted.flows);
}

TEST_CASE("A writer holds what just fits its room, and stops at a byte less") {
  const std::int64_t needed =
      3 * PlanSize::bytes_per_op + 2 * PlanSize::bytes_per_dependency + PlanSize::bytes_per_lane +
      PlanSize::bytes_per_section + PlanSize::bytes_per_name;
  const Roles roles = unfolded_roles(1);
  PlanWriter enough(roles, needed);
  CHECK_NOTHROW(write_three(enough));
  PlanWriter short_of(roles, needed - 1);
  CHECK_THROWS_AS(write_three(short_of), PlanTooLarge);
}

TEST_CASE("Flows that would not fit are refused before they are made, and counted in what is refused") {
  const Roles roles = unfolded_roles(1);
  const PlanWriter writer(roles, 10 * PlanSize::bytes_per_flow);
  CHECK_NOTHROW(writer.expect_flows(10));
  try {
    writer.expect_flows(11);
    FAIL("11 flows fit where 10 do");
  } catch (const PlanTooLarge& found) {
    CHECK(found.size.flows == 11);
  }
}

TEST_CASE("A traffic takes room for its flows and its rounds") {
  const Roles roles = unfolded_roles(1);
  PlanWriter writer(roles, 9 * PlanSize::bytes_per_flow);
  CHECK_THROWS_AS(writer.traffic("pairs", [] { return pairs(5); }), PlanTooLarge);
}

TEST_CASE("A relay takes the room of an op and of what is known of its messages") {
  const Roles roles = unfolded_roles(1);
  const std::int64_t needed = PlanSize::bytes_per_lane + PlanSize::bytes_per_op + PlanSize::bytes_per_relay +
                              7 * PlanSize::bytes_per_message;
  const auto write = [](PlanWriter& writer) {
    const LaneId lane = writer.lane({.rank = Rank{0}});
    writer.relay(lane, writer.hop_path({.source = Rank{0}, .destination = Rank{0}}), Bytes{1}, 7);
  };
  PlanWriter enough(roles, needed);
  CHECK_NOTHROW(write(enough));
  CHECK(enough.counted().bytes() == needed);
  CHECK(enough.counted().steps() == 7);
  PlanWriter short_of(roles, needed - 1);
  CHECK_THROWS_AS(write(short_of), PlanTooLarge);
}

}  // namespace lockstep::plan_size_test
