#include "sim/plan/coarse_plan.h"

#include <doctest/doctest.h>

#include "sim/engine/executor.h"
#include "sim/plan/plan_writer.h"

namespace lockstep::coarse_plan_test {

constexpr Bandwidth full_rate{1'000'000'000'000};

// Two ranks, each with a lane for kernels; every path crosses its own link at one unit a picosecond.
struct Fixture {
  Roles roles = unfolded_roles(2);
  PlanWriter writer{roles};
  LaneId lane[2] = {writer.lane({.rank = Rank{0}}), writer.lane({.rank = Rank{1}})};

  Fixture() { writer.section("work", Category::forward); }

  OpId work(int rank, std::int64_t units, std::span<const OpId> after = {}) {
    return writer.transfer(lane[rank], writer.kernel_path(Rank{static_cast<std::uint32_t>(rank)}),
                           Bytes{units}, after);
  }
};

RouteTable routes_of(const Plan& plan) {
  RouteTable routes;
  for (std::uint32_t path = 0; path < plan.paths.size(); ++path) {
    const LinkUse use{.link = LinkId{path}};
    routes.add(std::span(&use, 1), Duration::zero());
  }
  return routes;
}

Timeline timeline_of(const Plan& plan) {
  return run(plan, std::vector<Bandwidth>(plan.paths.size(), full_rate), routes_of(plan));
}

std::int64_t end_of(const Plan& plan, OpId op) {
  return timeline_of(plan).end[op.index].since_start().picoseconds();
}

TEST_CASE("Kernels that follow each other become one that takes their sum") {
  Fixture f;
  f.work(0, 3);
  f.work(0, 4);
  f.work(0, 5);
  const Plan plan = std::move(f.writer).finish();
  const CoarsePlan coarse = coarsen(plan, {});
  REQUIRE(coarse.plan.size() == 1);
  CHECK(coarse.plan.amount[0] == 3 + 4 + 5);
  CHECK(coarse.parts.size() == 3);
  CHECK(end_of(coarse.plan, OpId{0}) == 3 + 4 + 5);
}

// Rank 1 waits for the first kernel of rank 0 (3), then works 2; rank 0 works 3, 4 and, once rank 1 is done,
// 1 more: its last kernel starts at max(3 + 4, 3 + 2).
TEST_CASE("Nothing is merged across an op that somebody waits for") {
  Fixture f;
  const OpId first = f.work(0, 3);
  f.work(0, 2);
  f.work(0, 2);
  const OpId other = f.work(1, 2, After{first});
  f.writer.section("wait", Category::communication);
  f.writer.join(f.lane[0], After{other});
  f.writer.section("work", Category::forward);
  const OpId last = f.work(0, 1);
  const Plan plan = std::move(f.writer).finish();
  const CoarsePlan coarse = coarsen(plan, {});
  CHECK(coarse.plan.size() == 4);  // 3; 2 + 2; rank 1; the last: the join hands on what it waits for
  CHECK(end_of(coarse.plan, coarse.op_of[last.index]) == end_of(plan, last));
  CHECK(end_of(coarse.plan, coarse.op_of[last.index]) == 3 + 4 + 1);
}

TEST_CASE("A join that marks the end of an op falls away") {
  Fixture f;
  f.work(0, 3);
  const OpId mark = f.writer.join(f.lane[0]);
  const OpId other = f.work(1, 2, After{mark});
  const Plan plan = std::move(f.writer).finish();
  const CoarsePlan coarse = coarsen(plan, {});
  CHECK(coarse.plan.size() == 2);
  CHECK(coarse.op_of[mark.index] == OpId{0});
  CHECK(end_of(coarse.plan, coarse.op_of[other.index]) == 3 + 2);
}

// Two launches of 7 after kernels of 3 and 5: the transfer of 2 starts at max(3, 5) + 7.
TEST_CASE("Equal launches before one transfer become one after the last") {
  Fixture f;
  std::vector<OpId> launches;
  for (const int rank : {0, 1}) {
    const OpId ready = f.work(rank, 3 + 2 * rank);
    const LaneId lane = f.writer.new_channel_lane(Rank{static_cast<std::uint32_t>(rank)});
    launches.push_back(f.writer.delay(lane, Duration::picoseconds(7), After{ready}));
  }
  const PathId path = f.writer.coupled_path({.kind = PathKind::coupled});
  const OpId moved = f.writer.transfer(f.writer.new_channel_lane(Rank{0}), path, Bytes{2}, launches);
  std::vector<OpId> results;
  for (const int rank : {0, 1}) results.push_back(f.writer.join(f.lane[rank], After{launches[rank], moved}));
  const Plan plan = std::move(f.writer).finish();
  const CoarsePlan coarse = coarsen(plan, {});
  CHECK(plan.size() - coarse.plan.size() == 1);
  for (const OpId result : results) CHECK(end_of(coarse.plan, coarse.op_of[result.index]) == 5 + 7 + 2);
}

TEST_CASE("Ops on both sides of a boundary stay apart, and the boundary is found again") {
  Fixture f;
  f.work(0, 3);
  f.work(0, 4);
  const OpId boundary = f.work(0, 5);
  f.work(0, 6);
  const Plan plan = std::move(f.writer).finish();
  const CoarsePlan coarse = coarsen(plan, std::vector<OpId>{OpId{0}, boundary, OpId{4}});
  REQUIRE(coarse.plan.size() == 2);
  CHECK(coarse.plan.amount[0] == 3 + 4);
  CHECK(coarse.plan.amount[1] == 5 + 6);
  CHECK(coarse.boundaries == std::vector<OpId>{OpId{0}, OpId{1}, OpId{2}});
}

// 30 of 40 multiply and 10 move bytes: nearer to the first than to the second.
TEST_CASE("Merged kernels are bound as most of them") {
  Fixture f;
  const OpId first = f.work(0, 10);
  const OpId second = f.work(0, 30);
  Plan plan = std::move(f.writer).finish();
  Path bound = plan.paths[plan.path[first.index]];
  bound.bound = {.moving = KernelBound::parts};
  plan.path[first.index] = plan.paths.push_back(bound);
  bound.bound = {.multiplying = KernelBound::parts};
  plan.path[second.index] = plan.paths.push_back(bound);
  const CoarsePlan coarse = coarsen(plan, {});
  REQUIRE(coarse.plan.size() == 1);
  CHECK(coarse.plan.path[0] == plan.path[second.index]);
}

}  // namespace lockstep::coarse_plan_test
