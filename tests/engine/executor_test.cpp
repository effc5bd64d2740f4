// Plans of a few ops whose every start and end can be said in advance.

#include "sim/engine/executor.h"

#include <doctest/doctest.h>

#include <vector>

#include "sim/plan/plan_writer.h"

namespace lockstep::engine_executor_test {

constexpr Bandwidth link_rate{1'000'000'000};
constexpr Duration latency = Duration::microseconds(2);

Duration us(std::int64_t count) {
  return Duration::microseconds(count);
}

// One rank, one link: hop paths cross it with a latency; the kernel path reserves a quarter of its SMs,
// beside which everything takes 5/4 as long.
constexpr Interference interference{.slowdown = Ratio::one(), .sm_interference = Ratio::one(), .sms = 4};

class Bench {
 public:
  explicit Bench(Bandwidth rate = link_rate) : rate_(rate), roles_(unfolded_roles(2)), writer_(roles_) {
    writer_.section("test", Category::other);
  }

  PlanWriter& writer() { return writer_; }
  LaneId lane(std::uint32_t slots = 1) {
    return writer_.lane({.rank = Rank{0}, .kind = LaneKind::compute, .index = 0, .slots = slots});
  }
  LaneId ready_lane(std::uint32_t slots = 1) {
    return writer_.lane({.rank = Rank{0},
                         .kind = LaneKind::host,
                         .index = 0,
                         .slots = slots,
                         .discipline = Discipline::when_ready});
  }
  PathId hop() {
    return writer_.hop_path({.source = Rank{0}, .destination = Rank{1}, .channel = 0, .protocol = 0});
  }
  PathId reserving() { return writer_.kernel_path(Rank{0}); }

  const Timeline& run() {
    plan_ = std::move(writer_).finish();
    RouteTable routes(interference);
    for (const Path& path : plan_.paths) {
      const bool is_hop = path.kind == PathKind::hop;
      const LinkUse use{
          .link = LinkId{0}, .multiplicity = is_hop ? 1u : 0u, .reserved_sms = is_hop ? 0u : 1u};
      routes.add(std::span(&use, 1), is_hop ? latency : Duration::zero());
    }
    const std::vector<Bandwidth> capacities{rate_};
    timeline_ = lockstep::run(plan_, capacities, routes);
    CHECK(run_to_ends(plan_, capacities, routes, timeline_).end == timeline_.end);
    return timeline_;
  }
  Duration start(OpId op) const { return timeline_.start[op.index].since_start(); }
  Duration end(OpId op) const { return timeline_.end[op.index].since_start(); }

 private:
  Bandwidth rate_;
  Roles roles_;
  PlanWriter writer_;
  Plan plan_;
  Timeline timeline_;
};

TEST_CASE("A delay takes its amount") {
  Bench bench;
  const OpId op = bench.writer().delay(bench.lane(), us(7));
  bench.run();
  CHECK(bench.start(op) == Duration::zero());
  CHECK(bench.end(op) == us(7));
}

TEST_CASE("A join takes no time and ends with the last of what it waits for") {
  Bench bench;
  const OpId early = bench.writer().delay(bench.lane(), us(3));
  const OpId late = bench.writer().delay(bench.lane(), us(5));
  const OpId join = bench.writer().join(bench.lane(), After{early, late});
  bench.run();
  CHECK(bench.start(join) == us(5));
  CHECK(bench.end(join) == us(5));
}

TEST_CASE("A dependent starts the instant its dependency ends and never a picosecond before") {
  Bench bench;
  const OpId first = bench.writer().delay(bench.lane(), Duration::picoseconds(1'000'001));
  const OpId second = bench.writer().delay(bench.lane(), us(1), After{first});
  bench.run();
  CHECK(bench.start(second) == Duration::picoseconds(1'000'001));
  CHECK(bench.end(second) == Duration::picoseconds(1'000'001) + us(1));
}

// The last byte leaves at S / C; the receiver has it one latency later.
TEST_CASE("A transfer ends one latency after its last byte has left") {
  Bench bench;
  const OpId op = bench.writer().transfer(bench.lane(), bench.hop(), Bytes{1'000});
  bench.run();
  CHECK(bench.end(op) == time_to_move(Bytes{1'000}, link_rate) + latency);
}

// The lane is free at S / C: the next transfer starts then, not when the first has arrived.
TEST_CASE("A transfer leaves its lane with its last byte, before it arrives") {
  Bench bench;
  const LaneId lane = bench.lane();
  const OpId first = bench.writer().transfer(lane, bench.hop(), Bytes{1'000});
  const OpId second = bench.writer().transfer(lane, bench.hop(), Bytes{1'000});
  bench.run();
  const Duration moving = time_to_move(Bytes{1'000}, link_rate);
  CHECK(bench.start(second) == moving);
  CHECK(bench.end(second) == moving * 2 + latency);
  CHECK(bench.end(first) == moving + latency);
}

TEST_CASE("A dependent of a transfer waits for its arrival") {
  Bench bench;
  const OpId sent = bench.writer().transfer(bench.lane(), bench.hop(), Bytes{1'000});
  const OpId then = bench.writer().delay(bench.lane(), us(1), After{sent});
  bench.run();
  CHECK(bench.start(then) == time_to_move(Bytes{1'000}, link_rate) + latency);
}

TEST_CASE("Ops of one lane run one after another in the order they were written") {
  Bench bench;
  const LaneId lane = bench.lane();
  const OpId blocker = bench.writer().delay(bench.lane(), us(10));
  const OpId first = bench.writer().delay(lane, us(1), After{blocker});
  const OpId second = bench.writer().delay(lane, us(2));
  bench.run();
  CHECK(bench.start(first) == us(10));
  CHECK(bench.start(second) == us(10 + 1));  // it was ready at 0 and waited for its lane
}

TEST_CASE("Two lanes overlap") {
  Bench bench;
  const OpId a = bench.writer().delay(bench.lane(), us(4));
  const OpId b = bench.writer().delay(bench.lane(), us(6));
  const Timeline& timeline = bench.run();
  CHECK(bench.start(a) == bench.start(b));
  CHECK(timeline.finish().since_start() == std::max(us(4), us(6)));
}

// Two slots: the third collective starts when the first of the two before it returns its slot.
TEST_CASE("In a pool of two slots the third waits for the first to be returned") {
  Bench bench;
  const LaneId pool = bench.lane(2);
  const std::vector<Duration> lengths{us(5), us(3), us(2)};
  std::vector<OpId> takes;
  for (const Duration length : lengths) {
    const OpId take = bench.writer().take(pool, no_path);
    const OpId work = bench.writer().delay(bench.lane(), length, After{take});
    bench.writer().give_back(pool, no_path, After{work});
    takes.push_back(take);
  }
  bench.run();
  CHECK(bench.start(takes[0]) == Duration::zero());
  CHECK(bench.start(takes[1]) == Duration::zero());
  CHECK(bench.start(takes[2]) == std::min(us(5), us(3)));
}

// Slots are taken in the order they were written: the second take was ready at 0, but the first comes before
// it and is ready only at 4.
TEST_CASE("A pool is entered in the order its takes were written") {
  Bench bench;
  const LaneId pool = bench.lane(2);
  const OpId late = bench.writer().delay(bench.lane(), us(4));
  const OpId first = bench.writer().take(pool, no_path, After{late});
  bench.writer().give_back(pool, no_path, After{first});
  const OpId second = bench.writer().take(pool, no_path);
  bench.writer().give_back(pool, no_path, After{second});
  bench.run();
  CHECK(bench.start(first) == us(4));
  CHECK(bench.start(second) == us(4));
}

// Between take and give back an SM is held: the transfer runs at 4/5 of the link.
TEST_CASE("What a take reserves is gone until it is given back") {
  Bench bench;
  const LaneId lane = bench.lane();
  const OpId take = bench.writer().take(lane, bench.reserving());
  const OpId sent = bench.writer().transfer(bench.lane(), bench.hop(), Bytes{4'000}, After{take});
  bench.writer().give_back(lane, bench.reserving(), After{sent});
  const OpId later = bench.writer().transfer(lane, bench.hop(), Bytes{4'000});
  bench.run();
  const Bandwidth kept{link_rate.count() - link_rate.count() / 5};
  CHECK(bench.end(sent) == time_to_move(Bytes{4'000}, kept) + latency);
  CHECK(bench.end(later) - bench.start(later) == time_to_move(Bytes{4'000}, link_rate) + latency);
}

// Two collectives start at 0 and hold an SM of four each, one for 4 us, one for 8 us. Beside them a transfer
// goes at 1 / (1 + 2/4) of the link, then at 1 / (1 + 1/4), then at all of it. Rates are whole MB/s: 666 and
// 800.
TEST_CASE("Two collectives in flight hold the SMs of both, in one lane's slots or on two lanes") {
  for (const bool is_one_lane : {false, true}) {
    Bench bench;
    const LaneId first = bench.lane(2);
    const LaneId second = is_one_lane ? first : bench.lane();
    for (const auto& [lane, length] : {std::pair{first, us(4)}, std::pair{second, us(8)}}) {
      const OpId take = bench.writer().take(lane, bench.reserving());
      const OpId work = bench.writer().delay(bench.lane(), length, After{take});
      bench.writer().give_back(lane, bench.reserving(), After{work});
    }
    const OpId sent = bench.writer().transfer(bench.lane(), bench.hop(), Bytes{10'000});
    bench.run();
    const Bytes beside_two = moved_in(us(4), Bandwidth{666'000'000});
    const Bytes beside_one = moved_in(us(4), Bandwidth{800'000'000});
    const Bytes alone{10'000 - beside_two.count() - beside_one.count()};
    CHECK(bench.end(sent) == us(8) + time_to_move(alone, link_rate) + latency);
  }
}

TEST_CASE("A dependency cycle is reported as a bug of the plan's writer") {
  Bench bench;
  const OpId a = bench.writer().delay(bench.lane(), us(1));
  const OpId b = bench.writer().delay(bench.lane(), us(1), After{a});
  bench.writer().depend(a, b);
  CHECK_THROWS_AS(bench.run(), InternalError);
}

TEST_CASE("An op that waits for what its lane holds back is a cycle too") {
  Bench bench;
  const LaneId lane = bench.lane();
  const OpId first = bench.writer().delay(lane, us(1));
  const OpId second = bench.writer().delay(lane, us(1));
  bench.writer().depend(first, second);
  CHECK_THROWS_AS(bench.run(), InternalError);
}

// b is written first but ready last: 3 us against 1 us. a runs [1, 11), b waits for it: [11, 21).
TEST_CASE("A lane that runs what is ready does not wait for what was written first") {
  Bench bench;
  const OpId late = bench.writer().delay(bench.lane(), us(3));
  const OpId early = bench.writer().delay(bench.lane(), us(1));
  const LaneId shared = bench.ready_lane();
  const OpId b = bench.writer().delay(shared, us(10), After{late});
  const OpId a = bench.writer().delay(shared, us(10), After{early});
  bench.run();
  CHECK(bench.start(a) == us(1));
  CHECK(bench.start(b) == us(11));
}

// All three become ready at 0 in the order in which their dependencies were written.
TEST_CASE("Ops that become ready at one instant run in the order in which they did") {
  Bench bench;
  const LaneId shared = bench.ready_lane();
  std::vector<OpId> ops;
  for (int i = 0; i < 3; ++i) ops.push_back(bench.writer().delay(shared, us(2)));
  bench.run();
  for (int i = 0; i < 3; ++i) CHECK(bench.start(ops[static_cast<std::size_t>(i)]) == us(2 * i));
}

// At 0 the one of priority 5 finds the lane idle; while it runs [0, 4) those of 3, 1 and 3 become ready.
TEST_CASE(
    "A lower priority number overtakes what waits but interrupts nothing, and equals keep their order") {
  Bench bench;
  const LaneId shared = bench.ready_lane();
  const auto ready_at = [&](std::int64_t time, std::uint32_t priority) {
    const OpId ready = bench.writer().delay(bench.lane(), us(time));
    const OpId op = bench.writer().delay(shared, us(4), After{ready});
    bench.writer().prioritise(op, priority);
    return op;
  };
  const OpId running = ready_at(0, 5);
  const OpId second_of_three = ready_at(2, 3);
  const OpId first_of_three = ready_at(1, 3);
  const OpId urgent = ready_at(3, 1);
  bench.run();
  CHECK(bench.start(running) == us(0));
  CHECK(bench.start(urgent) == us(4));
  CHECK(bench.start(first_of_three) == us(8));
  CHECK(bench.start(second_of_three) == us(12));
}

// Of three ops of 6 us two run at once; the third follows the first that ends.
TEST_CASE("A lane that runs what is ready has as many at work as it has slots") {
  Bench bench;
  const LaneId shared = bench.ready_lane(2);
  const OpId first = bench.writer().delay(shared, us(6));
  const OpId second = bench.writer().delay(shared, us(7));
  const OpId third = bench.writer().delay(shared, us(6));
  bench.run();
  CHECK(bench.start(first) == us(0));
  CHECK(bench.start(second) == us(0));
  CHECK(bench.start(third) == us(6));
}

// The first 1,000 B have left after 1 us; their latency of 2 us holds up nobody.
TEST_CASE("A transfer leaves a lane that runs what is ready with its last byte, too") {
  Bench bench;
  const LaneId shared = bench.ready_lane();
  bench.writer().transfer(shared, bench.hop(), Bytes{1'000});
  const OpId next = bench.writer().transfer(shared, bench.hop(), Bytes{1'000});
  bench.run();
  CHECK(bench.start(next) == time_to_move(Bytes{1'000}, link_rate));
}

TEST_CASE("An empty plan takes no time") {
  Bench bench;
  CHECK(bench.run().finish() == Time{});
}

// Two events an op, three for a transfer with latency less the start that every op has: a delay and a join
// have start and end; a transfer start, and end after its latency.
TEST_CASE("An op is two events") {
  Bench bench;
  const OpId delay = bench.writer().delay(bench.lane(), us(1));
  const OpId sent = bench.writer().transfer(bench.lane(), bench.hop(), Bytes{10}, After{delay});
  bench.writer().join(bench.lane(), After{sent});
  CHECK(bench.run().events == 2 * 3);
}

// At 1,000,000,007 bytes a second no instant falls on a whole byte. Were the transfer of nothing to share the
// link for its instant, the other would go on from a rounded rest.
TEST_CASE("A transfer of nothing takes no share from others, not even for an instant") {
  const auto ends = [](bool with_nothing) {
    Bench bench(Bandwidth{1'000'000'007});
    const OpId moved = bench.writer().transfer(bench.lane(), bench.hop(), Bytes{123'456'789});
    const LaneId other = bench.lane();
    for (std::int64_t i = 1; i <= 5 && with_nothing; ++i) {
      const OpId wait = bench.writer().delay(bench.lane(), Duration::picoseconds(777'777'777 * i));
      bench.writer().transfer(other, bench.hop(), Bytes{0}, std::span(&wait, 1));
    }
    bench.run();
    return bench.end(moved);
  };
  CHECK(ends(true) == ends(false));
}

}  // namespace lockstep::engine_executor_test
