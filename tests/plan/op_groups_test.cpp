#include "sim/plan/op_groups.h"

#include <doctest/doctest.h>

#include "sim/plan/plan_writer.h"

namespace lockstep::op_groups_test {

struct Fixture {
  Roles roles = unfolded_roles(1);
  PlanWriter writer{roles};
  LaneId lane = writer.lane({.rank = Rank{0}});

  Fixture() { writer.section("work", Category::forward); }

  OpId kernel(std::int64_t units) {
    return writer.transfer(lane, writer.kernel_path(Rank{0}), Bytes{units}, {});
  }
};

TEST_CASE("Kernels of one lane are one group, unless a boundary stands between them") {
  Fixture f;
  f.kernel(1);
  const OpId second = f.kernel(2);
  f.kernel(3);
  const Plan plan = std::move(f.writer).finish();
  CHECK(group_ops(plan, {}).groups.size() == 1);
  const OpGroups apart = group_ops(plan, std::span(&second, 1));
  REQUIRE(apart.groups.size() == 2);
  CHECK(apart.groups[0].parts == std::vector<std::uint32_t>{0});
  CHECK(apart.groups[1].parts == std::vector<std::uint32_t>{1, 2});
  CHECK(apart.groups[0].lane_next == 1);
  CHECK(apart.groups[1].follows_lane);
}

TEST_CASE("An op that only marks an end belongs to the group that ends then") {
  Fixture f;
  f.kernel(1);
  const OpId mark = f.writer.join(f.lane);
  f.kernel(2);
  const Plan plan = std::move(f.writer).finish();
  const OpGroups found = group_ops(plan, {});
  CHECK(found.of_op[mark.index] == found.of_op[0]);
  CHECK(found.groups.size() == 2);  // somebody may wait for the mark: what follows stays apart
}

// A wait for a message and then another op: a kernel takes over what is waited for, a wait for the host does not, or
// the message would be told as host's time.
std::size_t groups_around_a_wait(bool is_host_next) {
  Fixture f;
  const OpId elsewhere = f.writer.delay(f.writer.new_channel_lane(Rank{0}), Duration::picoseconds(9));
  f.kernel(1);
  f.writer.section("wait for a message", Category::communication);
  f.writer.join(f.lane, After{elsewhere});
  if (is_host_next) {
    f.writer.section("wait for the host", Category::host_overhead);
    f.writer.join(f.lane, After{elsewhere});
  }
  f.writer.section("work", Category::forward);
  f.kernel(2);
  return group_ops(std::move(f.writer).finish(), {}).groups.size();
}

TEST_CASE("A wait is left to the op after it, but not to a wait for the host") {
  CHECK(groups_around_a_wait(false) == 3);  // the delay and the two kernels
  CHECK(groups_around_a_wait(true) == 5);   // and both waits
}

}  // namespace lockstep::op_groups_test
