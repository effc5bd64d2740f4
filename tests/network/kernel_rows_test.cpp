// A row of kernels, laid out at once, is what its kernels are one by one.

#include "sim/network/kernel_rows.h"

#include <algorithm>
#include <array>
#include <vector>

#include "sim/engine/executor.h"
#include "sim/plan/plan_writer.h"
#include "tests/support/property.h"

namespace lockstep::kernel_rows_test {

// A GPU's kernels are slowed by what bounds them while collectives hold its SMs.
constexpr Interference interference{.slowdown = Ratio::percent(103), .sms = 108, .is_by_bound = true};
constexpr Bandwidth full_rate{picoseconds_per_second};
constexpr int ranks = 2;

// Kernels on two streams of a GPU, and collectives that come at any time.
struct DrawnPlan {
  Plan plan;
  RouteTable routes{interference};
};

class Drawing {
 public:
  explicit Drawing(PlanWriter& writer) : writer_(writer) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      compute_[rank] = writer.lane({.rank = Rank{rank}});
      side_[rank] = writer.lane({.rank = Rank{rank}, .kind = LaneKind::channel});
      communication_[rank] = writer.lane({.rank = Rank{rank}, .kind = LaneKind::communication});
    }
  }

  void draw() {
    const int pieces = *rc::gen::inRange(1, 12);
    for (int piece = 0; piece < pieces; ++piece) {
      const auto rank = *rc::gen::inRange<std::uint32_t>(0, ranks);
      const int kind = *rc::gen::inRange(0, 8);
      if (kind < 5)
        write_row(compute_[rank], rank);
      else if (kind < 6)
        write_row(side_[rank], rank);
      else
        write_collective();
    }
  }

 private:
  std::int64_t amount() {
    return *rc::gen::inRange<std::int64_t>(0, 60) * *rc::gen::inRange<std::int64_t>(0, 9);
  }

  // Others may wait for any of its kernels.
  void write_row(LaneId lane, std::uint32_t rank) {
    const int kernels = *rc::gen::inRange(1, 9);
    for (int kernel = 0; kernel < kernels; ++kernel) {
      const OpId op = writer_.transfer(lane, bound_path(rank), Bytes{amount()});
      if (*rc::gen::inRange(0, 4) == 0)
        ready_ = op;
    }
  }

  PathId bound_path(std::uint32_t rank) {
    Path path{.kind = PathKind::kernel, .rank = Rank{rank}};
    path.bound = {.multiplying = *rc::gen::element<std::uint8_t>(0, 5, 16),
                  .moving = *rc::gen::element<std::uint8_t>(0, 9)};
    return writer_.coupled_path(path);
  }

  void write_collective() {
    const HeldByCollective held{.channels = *rc::gen::inRange<std::uint32_t>(1, 30)};
    std::array<OpId, ranks> begin;
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      begin[rank] =
          writer_.take(communication_[rank], writer_.held_path(Rank{rank}, held), std::span(&ready_, 1));
    const OpId moved =
        writer_.delay(writer_.new_channel_lane(Rank{0}), Duration::picoseconds(amount()), begin);
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      writer_.give_back(communication_[rank], writer_.held_path(Rank{rank}, held), After{moved});
    if (*rc::gen::arbitrary<bool>())
      writer_.join(compute_[0], After{moved});
  }

  PlanWriter& writer_;
  std::array<LaneId, ranks> compute_, side_, communication_;
  OpId ready_ = no_op;
};

DrawnPlan drawn_plan() {
  const Roles roles = unfolded_roles(ranks);
  PlanWriter writer(roles);
  writer.section("drawn", Category::other);
  Drawing(writer).draw();
  DrawnPlan drawn;
  drawn.plan = std::move(writer).finish();
  for (const Path& path : drawn.plan.paths) {
    const LinkUse use{.link = LinkId{path.rank.index}, .multiplicity = 1, .reserved_sms = path.held.channels};
    drawn.routes.add(std::span(&use, 1), Duration::zero(), 1, path.bound);
  }
  return drawn;
}

// A lane that decides while it runs, though nothing runs on it, keeps every kernel an event of its own.
Plan without_rows(Plan plan) {
  plan.lanes.push_back({.rank = Rank{0}, .discipline = Discipline::when_ready});
  return plan;
}

TEST_CASE("A row of kernels starts and ends each as if it were an event of its own") {
  check_for_all(2'000, "rows", [] {
    const DrawnPlan drawn = drawn_plan();
    const std::vector<Bandwidth> capacities(ranks, full_rate);
    const Timeline rows = run(drawn.plan, capacities, drawn.routes);
    const Timeline events = run(without_rows(drawn.plan), capacities, drawn.routes);
    RC_ASSERT(rows.start == events.start);
    RC_ASSERT(rows.end == events.end);
    RC_ASSERT(rows.events == events.events);
  });
}

// Kernel 0 feeds a collective, 1 to 3 nobody; what is on another lane is of another row.
TEST_CASE("A row ends where somebody else waits, and where its lane does") {
  const Roles roles = unfolded_roles(1);
  PlanWriter writer(roles);
  const LaneId lane = writer.lane({.rank = Rank{0}});
  const auto kernel = [&](std::span<const OpId> after = {}) {
    return writer.transfer(lane, writer.kernel_path(Rank{0}), Bytes{1}, after);
  };
  const OpId fed = kernel();
  const OpId other = writer.delay(writer.lane({.rank = Rank{0}}), Duration::zero(), After{fed});
  const OpId first = kernel();
  const OpId second = kernel();
  const OpId waiting = kernel(After{other});
  const Plan plan = std::move(writer).finish();
  RouteTable routes;
  const LinkUse use{.link = LinkId{0}};
  routes.add(std::span(&use, 1), Duration::zero());
  Timeline timeline;
  const KernelRows rows(plan, routes, timeline);
  CHECK_FALSE(rows.goes_on(fed));
  CHECK(rows.goes_on(first));
  CHECK_FALSE(rows.goes_on(second));
  CHECK_FALSE(rows.goes_on(waiting));
}

}  // namespace lockstep::kernel_rows_test
