#include "sim/engine/update_loop.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

namespace lockstep::update_loop_test {

// Workers that compute 10 ms + 20 ms and whose weights and gradients take no time to move.
UpdateLoopInput alike(std::size_t workers) {
  UpdateLoopInput input;
  input.slowdown.assign(workers, Ratio::one());
  input.step = {.until_backward = Duration::milliseconds(10),
                .backward = Duration::milliseconds(20),
                .after_pull = {{Ratio::one(), Duration::milliseconds(10)}},
                .before_push = {{Ratio::one(), Duration::milliseconds(20)}}};
  input.rounds = 20;
  return input;
}

UpdateTotals totals_of(const UpdateLoopInput& input) {
  UpdateLoop loop(input);
  LearningEvent event;
  while (loop.next(event)) continue;
  return loop.totals();
}

double updates_per_second(const UpdateTotals& totals) {
  return static_cast<double>(totals.updates) / totals.window.in_seconds();
}

double mean_staleness(const UpdateTotals& totals) {
  return static_cast<double>(totals.staleness.sum()) / static_cast<double>(totals.staleness.total());
}

void check_that_time_adds_up(const UpdateTotals& totals) {
  for (const WorkerTime& time : totals.workers)
    CHECK((time.computing + time.communicating + time.waiting).picoseconds() == totals.window.picoseconds());
}

TEST_CASE("With nothing but computing, every worker updates once a step") {
  for (const std::size_t workers : {1, 3, 16}) {
    const UpdateTotals totals = totals_of(alike(workers));
    // 20 rounds of 30 ms; the workers of a round apply at one instant.
    CHECK(totals.window.picoseconds() == Duration::milliseconds(20 * 30).picoseconds());
    CHECK(totals.updates == static_cast<std::int64_t>(20 * workers));
    CHECK(totals.workers.front().computing.picoseconds() == totals.window.picoseconds());
    check_that_time_adds_up(totals);
  }
}

TEST_CASE("Equal workers are n - 1 updates stale after the first round") {
  for (const std::size_t workers : {1, 2, 7, 64})
    for (const bool takes_turns : {true, false}) {
      UpdateLoopInput input = alike(workers);
      input.server = {
          .update = Duration::microseconds(50), .takes_turns = takes_turns, .width = Ratio::one() * 4};
      const UpdateTotals totals = totals_of(input);
      CHECK(mean_staleness(totals) == static_cast<double>(workers) - 1);
    }
}

TEST_CASE("Each worker contributes at its own speed") {
  UpdateLoopInput input = alike(2);
  input.slowdown[1] = Ratio::one() * 3;
  input.rounds = 400;
  // 1 / 30 ms + 1 / 90 ms = 400 updates in 9 s, to one step at the ends of the window.
  const UpdateTotals totals = totals_of(input);
  CHECK(updates_per_second(totals) == doctest::Approx(1 / 0.030 + 1 / 0.090).epsilon(0.09 / 9));
  check_that_time_adds_up(totals);
}

TEST_CASE("A server that takes turns is never faster than its turns") {
  UpdateLoopInput input = alike(8);
  input.server = {.push = Duration::milliseconds(4), .update = Duration::milliseconds(2)};
  // 8 x 6 ms = 48 ms a round is more than the 30 + 6 ms of a worker: the server never rests.
  const UpdateTotals totals = totals_of(input);
  CHECK(totals.window.picoseconds() == Duration::milliseconds(20 * 48).picoseconds());
  CHECK(totals.server_work.picoseconds() == totals.window.picoseconds());
  // Each round a worker computes 30 ms, is served 6 ms and waits for the other 12 ms.
  CHECK(totals.workers[3].waiting.picoseconds() == Duration::milliseconds(20 * 12).picoseconds());
  check_that_time_adds_up(totals);
}

TEST_CASE("Workers on a crowded port fall out of step, and then no longer meet there") {
  UpdateLoopInput input = alike(4);
  input.pull = {
      .alone = Duration::milliseconds(5), .width = Ratio::one() * 2, .latency = Duration::milliseconds(1)};
  // Four at once on a port for two: two wait 5 ms for their turn, once. From then on each pair finds the port
  // free, and a round takes what it takes alone: nobody computes before all has come, 5 + 1 + 10 + 20 ms.
  const UpdateTotals totals = totals_of(input);
  CHECK(totals.window.picoseconds() == Duration::milliseconds(20 * 36).picoseconds());
  check_that_time_adds_up(totals);
}

TEST_CASE("Forward goes along with the weights that come") {
  UpdateLoopInput input = alike(1);
  input.pull = {.alone = Duration::milliseconds(8)};
  // Two layers of half the bytes each: 5 ms of forward left after the second has come at 8 ms, 10 ms after
  // the first at 4 ms: 14 ms. With one layer of all bytes it would be 18 ms.
  input.step.after_pull = {{Ratio::percent(50), Duration::milliseconds(10)},
                           {Ratio::one(), Duration::milliseconds(5)}};
  CHECK(totals_of(input).window.picoseconds() == Duration::milliseconds(20 * (14 + 20)).picoseconds());
}

TEST_CASE("Gradients leave while backward goes on") {
  UpdateLoopInput input = alike(1);
  input.push = {.alone = Duration::milliseconds(16)};
  // Half of the bytes are ready after 12 ms of backward, the others after 20 ms: the port is busy from 12 ms
  // on and ends at 28 ms.
  input.step.before_push = {{Ratio::one(), Duration::milliseconds(12)},
                            {Ratio::percent(50), Duration::milliseconds(20)}};
  CHECK(totals_of(input).window.picoseconds() == Duration::milliseconds(20 * (10 + 28)).picoseconds());
}

TEST_CASE("A server that goes along with a gradient's way is done when the later of the two is") {
  UpdateLoopInput input = alike(1);
  input.push = {.alone = Duration::milliseconds(6)};
  input.server.push = Duration::milliseconds(4);
  // The last gradient is ready after 10 + 20 ms; it leaves from then on, since all bytes are one gradient's.
  // One after the other: 6 + 4 ms more. Along with each other: the longer one, 6 ms.
  CHECK(totals_of(input).window.picoseconds() == Duration::milliseconds(20 * (30 + 6 + 4)).picoseconds());
  input.server.goes_along = true;
  const UpdateTotals totals = totals_of(input);
  CHECK(totals.window.picoseconds() == Duration::milliseconds(20 * (30 + 6)).picoseconds());
  check_that_time_adds_up(totals);
}

TEST_CASE("No update is staler than the bound, and nobody waits for ever") {
  for (const std::int64_t bound : {0, 1, 3, 8, 100}) {
    UpdateLoopInput input = alike(9);
    const Jitter jitter({JitterDistribution::gamma, Ratio::percent(80)}, {}, 0);
    input.jitter = &jitter;
    input.slowdown[4] = Ratio::one() * 5;
    input.server.update = Duration::milliseconds(1);
    input.staleness_bound = bound;
    input.rounds = 100;
    const UpdateTotals totals = totals_of(input);
    CHECK(totals.updates == 900);
    CHECK(totals.staleness.maximum() <= bound);
    check_that_time_adds_up(totals);
  }
}

TEST_CASE("A bound that never binds changes nothing") {
  UpdateLoopInput input = alike(6);
  input.server.update = Duration::milliseconds(1);
  const UpdateTotals free = totals_of(input);
  input.staleness_bound = 1000;
  const UpdateTotals bounded = totals_of(input);
  CHECK(bounded.window.picoseconds() == free.window.picoseconds());
  CHECK(bounded.staleness.counts() == free.staleness.counts());
}

TEST_CASE("A bound of zero lets one worker train at a time") {
  UpdateLoopInput input = alike(5);
  input.staleness_bound = 0;
  // Five workers one after the other, 30 ms each.
  CHECK(totals_of(input).window.picoseconds() == Duration::milliseconds(20 * 5 * 30).picoseconds());
}

TEST_CASE("A synchronous round lasts as long as its slowest worker") {
  UpdateLoopInput input = alike(4);
  input.rule = UpdateRule::synchronous;
  input.slowdown[2] = Ratio::one() * 2;
  input.server = {.push = Duration::milliseconds(1), .update = Duration::milliseconds(3)};
  // 60 ms of the slow worker, its push of 1 ms when all others have been taken in, and one update.
  const UpdateTotals totals = totals_of(input);
  CHECK(totals.window.picoseconds() == Duration::milliseconds(20 * 64).picoseconds());
  check_that_time_adds_up(totals);
}

TEST_CASE("A backup worker spares the round its straggler, whose gradients are dropped") {
  UpdateLoopInput input = alike(4);
  input.rule = UpdateRule::synchronous;
  input.slowdown[2] = Ratio::one() * 2 + Ratio::parts_per_million(1'000);
  input.backup_workers = 1;
  const UpdateTotals totals = totals_of(input);
  CHECK(totals.window.picoseconds() == Duration::milliseconds(20 * 30).picoseconds());
  CHECK(totals.updates == 20 * 3);
  check_that_time_adds_up(totals);
}

TEST_CASE("Averaging every k steps waits for the slowest once in k steps") {
  UpdateLoopInput input = alike(3);
  input.rule = UpdateRule::averaged;
  input.local_steps = 5;
  input.all_reduce = Duration::milliseconds(7);
  input.slowdown[1] = Ratio::one() * 2;
  // 20 steps are 4 periods of 5 x 60 ms and an all-reduce; the warm-up is a period.
  const UpdateTotals totals = totals_of(input);
  CHECK(totals.window.picoseconds() == Duration::milliseconds(4 * (5 * 60 + 7)).picoseconds());
  CHECK(totals.updates == 20 * 3);
  CHECK(totals.workers[0].waiting.picoseconds() == Duration::milliseconds(4 * 5 * 30).picoseconds());
  check_that_time_adds_up(totals);
}

TEST_CASE("Without a lock updates overlap and are counted") {
  UpdateLoopInput input = alike(4);
  input.server = {.update = Duration::milliseconds(8), .takes_turns = false, .width = Ratio::one() * 4};
  // Four arrive at one instant: three of them find another under way.
  const UpdateTotals totals = totals_of(input);
  CHECK(totals.conflicts == 20 * 3);
  CHECK(totals.window.picoseconds() == Duration::milliseconds(20 * 38).picoseconds());
}

TEST_CASE("Two runs of one input are one and the same") {
  const auto play = [] {
    UpdateLoopInput input = alike(10);
    const Jitter jitter({JitterDistribution::lognormal, Ratio::percent(30)}, {}, 0);
    input.jitter = &jitter;
    input.push = {.alone = Duration::milliseconds(3),
                  .width = Ratio::percent(150),
                  .latency = Duration::microseconds(10)};
    input.server.update = Duration::microseconds(700);
    UpdateLoop loop(input);
    LearningEvent event;
    std::vector<std::int64_t> trace;
    while (loop.next(event)) {
      trace.push_back(event.worker);
      trace.push_back(event.time.since_start().picoseconds());
    }
    return trace;
  };
  CHECK(play() == play());
}

}  // namespace lockstep::update_loop_test
