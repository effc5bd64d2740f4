#include "sim/training/host_lane.h"

#include <doctest/doctest.h>

#include "sim/engine/executor.h"

namespace lockstep::host_lane_test {

// Kernels of 10 ps, before each of which the host is asked for.
struct Ends {
  std::int64_t gpu = 0;
  std::size_t ops = 0;
};

Ends ends_of(const HostWork& work, bool reads_back_between) {
  const Roles roles = unfolded_roles(1);
  PlanWriter writer(roles);
  const std::vector<LaneId> compute{writer.lane({.rank = Rank{0}})};
  const std::vector<LaneId> issue{writer.lane({.rank = Rank{0}, .kind = LaneKind::issue})};
  HostLane host(writer, compute, issue, work);
  OpId last = no_op;
  for (std::size_t kernel = 0; kernel < work.issuing.size(); ++kernel) {
    if (kernel > 0 && reads_back_between)
      host.read_back();
    host.hold();
    writer.section("kernel", Category::forward);
    last = writer.delay(compute.front(), Duration::picoseconds(10));
  }
  const Plan plan = std::move(writer).finish();
  return {run(plan, {}, {}).end[last.index].since_start().picoseconds(), plan.size()};
}

constexpr Duration ps(std::int64_t count) {
  return Duration::picoseconds(count);
}

TEST_CASE("A kernel starts when it is issued, and the host goes on issuing meanwhile") {
  // The first is issued at 4 and ends at 14; the second is issued at 8, before that, and ends at 24.
  CHECK(ends_of({.issuing = {ps(4), ps(4)}}, false).gpu == 24);
  // Issued at 30, long after the first has ended.
  CHECK(ends_of({.issuing = {ps(4), ps(26)}}, false).gpu == 40);
}

TEST_CASE("A kernel that nothing waits for has no ops but its own") {
  CHECK(ends_of({.issuing = {ps(4), ps(0)}}, false).ops == 4);  // issue, wait, two kernels
  CHECK(ends_of({.issuing = {ps(0), ps(0)}}, true).ops == 2);   // what is read back is nobody's to ask for
}

TEST_CASE("What is read back holds the host until the GPU has ended") {
  // The second is issued 4 after the first's end at 14.
  CHECK(ends_of({.issuing = {ps(4), ps(4)}, .reads_back = ps(0)}, true).gpu == 28);
  // What was issued beside the kernel, from 4 to 24, took longer than that.
  CHECK(ends_of({.issuing = {ps(4), ps(4)}, .reads_back = ps(20)}, true).gpu == 38);
  CHECK(ends_of({.issuing = {ps(4), ps(4)}, .reads_back = {}}, true).gpu == 24);
}

// Two passes of one kernel.
Duration end_of_second_pass(const HostWork& work) {
  const Roles roles = unfolded_roles(1);
  PlanWriter writer(roles);
  const std::vector<LaneId> compute{writer.lane({.rank = Rank{0}})};
  const std::vector<LaneId> issue{writer.lane({.rank = Rank{0}, .kind = LaneKind::issue})};
  HostLane host(writer, compute, issue, work);
  OpId last = no_op;
  for (int pass = 0; pass < 2; ++pass) {
    host.begin_pass();
    host.hold();
    writer.section("kernel", Category::forward);
    last = writer.delay(compute.front(), ps(10));
  }
  const Plan plan = std::move(writer).finish();
  return run(plan, {}, {}).end[last.index].since_start();
}

TEST_CASE("A host that waits for its GPU before a pass issues it from where both have ended") {
  // The first ends at 14, with what the host issues beside it at 14, or at 24.
  CHECK(end_of_second_pass({.issuing = {ps(4), ps(4)}, .pass_waits = {{}, ps(0)}}) == ps(14 + 4 + 10));
  CHECK(end_of_second_pass({.issuing = {ps(4), ps(4)}, .pass_waits = {{}, ps(10)}}) == ps(14 + 4 + 10));
  CHECK(end_of_second_pass({.issuing = {ps(4), ps(4)}, .pass_waits = {{}, ps(20)}}) == ps(24 + 4 + 10));
}

}  // namespace lockstep::host_lane_test
