#include "sim/run/time_account.h"

#include <doctest/doctest.h>

#include "sim/engine/executor.h"
#include "sim/plan/plan_writer.h"

namespace lockstep::time_account_test {

constexpr Bandwidth full_rate{1'000'000'000'000};

// Two ranks that compute for a while, meet in a transfer, and compute again; a unit takes a picosecond.
struct Meeting {
  Plan plan;
  RankLanes lanes;
  IterationOps ops;
  RouteTable routes;
};

struct Length {
  std::int64_t first_rank, second_rank, transfer, after;
};

Meeting meeting(const Length& length, Category waits) {
  const Roles roles = unfolded_roles(2);
  PlanWriter writer(roles);
  Meeting result;
  for (const Rank rank : roles.representatives) {
    result.lanes.compute.push_back(writer.lane({.rank = rank}));
    result.lanes.communication.push_back(writer.lane({.rank = rank, .kind = LaneKind::communication}));
  }
  const auto compute = [&](std::uint32_t rank, std::int64_t units) {
    return writer.transfer(result.lanes.compute[rank], writer.kernel_path(Rank{rank}), Bytes{units});
  };
  writer.section("backward", Category::backward);
  const OpId ready[] = {compute(0, length.first_rank), compute(1, length.second_rank)};
  Communication& entry = result.ops.communications.emplace_back();
  entry.ranks = 2;
  std::vector<OpId> begin;
  for (const int rank : {0, 1}) {
    begin.push_back(writer.take(result.lanes.communication[rank], no_path, std::span(&ready[rank], 1)));
    entry.taking_part.push_back({.ready = ready[rank], .begin = begin.back()});
  }
  const OpId moved =
      writer.transfer(writer.new_channel_lane(Rank{0}), writer.coupled_path({.kind = PathKind::coupled}),
                      Bytes{length.transfer}, begin);
  for (const int rank : {0, 1})
    entry.taking_part[static_cast<std::size_t>(rank)].end =
        writer.give_back(result.lanes.communication[rank], no_path, After{moved});
  writer.section("wait", waits);
  for (const int rank : {0, 1}) writer.join(result.lanes.compute[rank], After{moved});
  writer.section("optimizer", Category::optimizer);
  for (const std::uint32_t rank : {0u, 1u}) compute(rank, length.after);
  result.ops.first = OpId{0};
  result.ops.last = OpId{static_cast<std::uint32_t>(writer.size())};
  result.plan = std::move(writer).finish();
  for (std::uint32_t path = 0; path < result.plan.paths.size(); ++path) {
    const LinkUse use{.link = LinkId{path}};
    result.routes.add(std::span(&use, 1), Duration::zero());
  }
  return result;
}

std::vector<TimeAccount> accounts_of(const Meeting& m) {
  const Timeline timeline = run(m.plan, std::vector<Bandwidth>(m.plan.paths.size(), full_rate), m.routes);
  std::vector<Time> ends(2);
  std::vector<TimeAccount> accounts = TimeKeeper(m.plan, m.lanes).account(timeline, m.ops, ends);
  for (std::size_t i = 0; i < 2; ++i) CHECK(accounts[i].total() == ends[i].since_start());
  return accounts;
}

// The first rank computes 10 and the second 15: the first waits 15 - 10 for the second, then both 4 for bytes.
TEST_CASE("Waiting for a late rank is told apart from waiting for bytes") {
  const std::vector<TimeAccount> accounts = accounts_of(meeting({10, 15, 4, 2}, Category::communication));
  CHECK(accounts[0].of(Category::backward).picoseconds() == 10);
  CHECK(accounts[0].straggler_wait.picoseconds() == 15 - 10);
  CHECK(accounts[0].of(Category::communication).picoseconds() == 4);
  CHECK(accounts[0].of(Category::optimizer).picoseconds() == 2);
  CHECK(accounts[0].communicating.picoseconds() == 15 - 10 + 4);
  CHECK(accounts[0].overlapped.picoseconds() == 0);
  CHECK(accounts[1].straggler_wait.picoseconds() == 0);
  CHECK(accounts[1].of(Category::communication).picoseconds() == 4);
}

TEST_CASE("A wait with a reason of its own is charged to that") {
  const std::vector<TimeAccount> accounts = accounts_of(meeting({10, 15, 4, 2}, Category::input_stall));
  CHECK(accounts[1].of(Category::input_stall).picoseconds() == 4);
  CHECK(accounts[1].of(Category::communication).picoseconds() == 0);
}

// Parts of 1 and 2 units of a kernel of 15: a third and the rest.
TEST_CASE("A merged kernel is charged by its parts") {
  const Meeting m = meeting({10, 15, 4, 2}, Category::communication);
  Charges charges;
  charges.begin.assign(m.plan.size() + 1, 0);
  for (std::size_t op = 2; op <= m.plan.size(); ++op) charges.begin[op] = 2;
  charges.parts = {{Category::forward, 1}, {Category::backward, 3}};
  const Timeline timeline = run(m.plan, std::vector<Bandwidth>(m.plan.paths.size(), full_rate), m.routes);
  std::vector<Time> ends(2);
  const std::vector<TimeAccount> accounts =
      TimeKeeper(m.plan, m.lanes, &charges).account(timeline, m.ops, ends);
  CHECK(accounts[1].of(Category::forward).picoseconds() == 15 / 3);
  CHECK(accounts[1].of(Category::backward).picoseconds() == 15 - 15 / 3);
}

}  // namespace lockstep::time_account_test
