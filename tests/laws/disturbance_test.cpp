// What must hold of whatever slows a part of the cluster down.

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/scenarios.h"

namespace lockstep::disturbance_test {

using Json = nlohmann::ordered_json;

// One layer and one bucket; nothing runs beside or after it: forward, backward, all-reduce. Collectives leave
// the kernels beside them alone.
Json plain_step(std::int64_t nodes, std::int64_t gpus) {
  Json given;
  given["cluster"] = {{"machine", "dgx_a100_40gb"}, {"nodes", nodes}, {"gpus_per_node", gpus}};
  given["model"]["layers"] =
      Json::array({{{"parameters", {1'000'000}}, {"forward_time", "10 ms"}, {"backward_time", "20 ms"}}});
  given["training"] = {{"strategy", "ddp"}, {"optimizer", "none"}, {"gradient_as_bucket_view", true}};
  given["compute"]["slowdown_during_communication"] = 1;
  return given;
}

Report report_of(const Json& given) {
  const Scenario scenario = scenario_from(given);
  return summarise(scenario, simulate(scenario));
}

// The straggler computes s (f + b), all others f + b; they begin the only collective as early as that, and
// all end it together. So each of the others waits (s - 1)(f + b). Of ranks that end together the first is
// reported: one that waits. The straggler's rate, two thirds, is rounded to a part in 10^6.
TEST_CASE("All others wait for a straggler as long as it computes longer") {
  Json given = plain_step(1, 8);
  given["cluster"]["stragglers"] = Json::array({{{"rank", 5}, {"slowdown", 1.5}}});
  const Report report = report_of(given);
  const Duration own = report.breakdown.forward + report.breakdown.backward;
  const double lost = (1.5 - 1) * own.in_seconds();
  CHECK(report.breakdown.straggler_wait.picoseconds() == report.disturbance.waiting.max.picoseconds());
  CHECK(report.disturbance.waiting.max.in_seconds() == doctest::Approx(lost).epsilon(1e-5));
  CHECK(report.disturbance.waiting.mean.in_seconds() == doctest::Approx(lost * 7 / 8).epsilon(1e-5));
}

// Who waits for whom is read from the groups that a collective was written for, not from times that happen to be
// equal: at `step` the members of a ring end one after another. What the ring's own steps take apart is small.
TEST_CASE("A straggler is waited for as long at fidelity step as at flow, whatever the strategy") {
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    const bool has_servers = strategy.hosts != nullptr;  // workers wait for messages: they are in no group
    if (has_servers || strategy.is_asynchronous || strategy.has_leader || name == "single")
      continue;
    Json given = plain_step(2, 4);
    given["training"] = {{"strategy", name}, {"optimizer", "none"}};
    given["cluster"]["stragglers"] = Json::array({{{"rank", 5}, {"slowdown", 1.5}}});
    given["simulation"]["fidelity"] = "flow";
    const double at_flow = report_of(given).disturbance.waiting.mean.in_seconds();
    given["simulation"]["fidelity"] = "step";
    const double at_step = report_of(given).disturbance.waiting.mean.in_seconds();
    INFO(name, ": ", at_flow, " s at flow, ", at_step, " s at step");
    CHECK(at_flow > 0.010);
    CHECK(at_step == doctest::Approx(at_flow).epsilon(0.05));
  }
}

TEST_CASE("Where all ranks are alike nobody waits for a straggler") {
  const Report report = report_of(plain_step(2, 8));
  CHECK(report.disturbance.waiting.max == Duration::zero());
  CHECK(report.disturbance.waiting.mean == Duration::zero());
  CHECK(report.breakdown.straggler_wait == Duration::zero());
  CHECK(report.breakdown.exposed_communication > Duration::zero());
}

Json slow_nic(std::int64_t node, double slowdown) {
  return {{"node", node}, {"slowdown", slowdown}};
}

TEST_CASE("A slow link never makes a step faster, and a slower one never less slow") {
  for (const char* fidelity : {"flow", "step"}) {
    Json given = plain_step(3, 8);
    given["simulation"]["fidelity"] = fidelity;
    Duration before = report_of(given).iteration;
    for (const double slowdown : {1.0, 1.5, 4.0, 20.0}) {
      given["cluster"]["slow_links"] = Json::array({slow_nic(1, slowdown)});
      const Duration slower = report_of(given).iteration;
      INFO(fidelity, ", ", slowdown);
      CHECK(slower >= before);
      before = slower;
    }
  }
}

// A ring is as slow as its narrowest link: one slow node costs as much as if all were slow.
TEST_CASE("One slow node slows a ring as much as if all were slow") {
  Json one = plain_step(3, 8);
  one["communication"]["algorithm"] = "ring";
  one["model"]["layers"][0]["parameters"] = {100'000'000};
  Json all = one;
  one["cluster"]["slow_links"] = Json::array({slow_nic(1, 4.0)});
  all["cluster"]["slow_links"] = Json::array({slow_nic(0, 4.0), slow_nic(1, 4.0), slow_nic(2, 4.0)});
  CHECK(report_of(one).iteration == report_of(all).iteration);
}

// Without overlap a step is compute and then communication, which starts when the slowest of n ranks is done:
// its mean is compute (1 + c E[max of n standard normals]) + communication, for a small deviation c, at which
// both distributions are normal. E[max] of 16 is 1.766 (rank_variation.cpp).
TEST_CASE("Under jitter a step waits for the slowest of all ranks") {
  for (const char* distribution : {"lognormal", "gamma"}) {
    Json given = plain_step(2, 8);
    const Report still = report_of(given);
    const double communication = still.breakdown.exposed_communication.in_seconds();
    given["cluster"]["jitter"] = {{"distribution", distribution}, {"coefficient_of_variation", 0.03}};
    given["simulation"]["iterations"] = 2'000;
    const Report jittery = report_of(given);
    const double compute = 0.030;
    const double expected = compute * (1 + 0.03 * 1.766) + communication;
    INFO(distribution);
    CHECK(jittery.iteration.in_seconds() == doctest::Approx(expected).epsilon(0.02));
    // A rank itself takes the mean; what it waits is what the slowest takes beyond.
    CHECK(jittery.disturbance.waiting.mean.in_seconds() ==
          doctest::Approx(compute * 0.03 * 1.766).epsilon(0.05));
    CHECK(jittery.times.p5 < jittery.times.p50);
    CHECK(jittery.times.p50 < jittery.times.p95);
    CHECK(jittery.times.p95 <= jittery.times.p99);
    CHECK(jittery.times.p99 <= jittery.times.longest);
  }
}

// One of n ranks is slow with probability p: the step is slow unless none is, (1 - (1 - p)^n).
TEST_CASE("Passing stragglers slow as many steps as at least one passes by") {
  Json given = plain_step(1, 8);
  const double still = report_of(given).iteration.in_seconds();
  given["cluster"]["stragglers"] = Json::array({{{"probability", 0.05}, {"slowdown", 2}}});
  given["simulation"]["iterations"] = 5'000;
  const double slow_steps = 1 - std::pow(0.95, 8);
  const double compute = 0.030;  // what a slow rank takes more
  CHECK(report_of(given).iteration.in_seconds() ==
        doctest::Approx(still + slow_steps * compute).epsilon(0.02));
}

TEST_CASE("Jitter of distribution none changes nothing") {
  Json given = plain_step(2, 8);
  const Report still = report_of(given);
  given["cluster"]["jitter"] = {{"distribution", "none"}};
  CHECK(report_of(given).iteration == still.iteration);
}

// What is drawn is a part of how GPUs of one kind differ, which everybody is charged for.
TEST_CASE("A step waits no less for its peers the more their times are drawn") {
  Json given = plain_step(2, 8);
  given["model"] = {{"name", "resnet50"}, {"batch_per_gpu", 32}};
  Duration before = report_of(given).iteration;
  for (const double deviation : {0.0, 0.005, 0.01, 0.02, 0.04}) {
    given["cluster"]["jitter"] = {{"distribution", "lognormal"}, {"coefficient_of_variation", deviation}};
    given["simulation"]["iterations"] = 200;
    const Duration drawn = report_of(given).iteration;
    INFO(deviation);
    CHECK(drawn >= before - Duration::nanoseconds(10));  // of rounding, kernel by kernel
    before = drawn;
  }
}

// The straggler computes 45 ms and the others 30 ms: they wait in the collective for 15 ms and its own time.
TEST_CASE("A collective that waits longer than its timeout ends the run") {
  Json given = plain_step(1, 8);
  given["cluster"]["stragglers"] = Json::array({{{"rank", 5}, {"slowdown", 1.5}}});
  given["communication"]["timeout"] = "10 ms";
  const Report ended = report_of(given);
  REQUIRE(ended.disturbance.timed_out);
  CHECK(ended.disturbance.timed_out->iteration == 1);
  CHECK(ended.disturbance.timed_out->collective == "bucket 0");
  CHECK(ended.disturbance.timed_out->waited > Duration::milliseconds(15));
  given["communication"]["timeout"] = "1 s";
  CHECK_FALSE(report_of(given).disturbance.timed_out);
}

// Slow by 10 once in some iterations: the others wait 270 ms, longer than the timeout.
TEST_CASE("What is reported of a run that timed out are the iterations before") {
  Json given = plain_step(1, 2);
  given["cluster"]["stragglers"] = Json::array({{{"probability", 0.02}, {"slowdown", 10}}});
  given["communication"]["timeout"] = "100 ms";
  given["simulation"]["iterations"] = 1'000;
  const Report ended = report_of(given);
  REQUIRE(ended.disturbance.timed_out);
  CHECK(ended.disturbance.timed_out->iteration > 2);
  CHECK(ended.disturbance.timed_out->iteration < 1'000);
  CHECK(ended.times.longest < Duration::milliseconds(100));
  CHECK(ended.disturbance.timed_out->waited > Duration::milliseconds(100));
}

TEST_CASE("Ranks of several speeds and slow links fold to the same step and the same waiting") {
  for (const char* fidelity : {"flow", "step"}) {
    Json given = plain_step(3, 8);
    given["simulation"]["fidelity"] = fidelity;
    given["cluster"]["stragglers"] = Json::array({{{"fraction", 0.3}, {"slowdown", 1.1}},
                                                  {{"rank", 1}, {"slowdown", 1.2}},
                                                  {{"rank", 13}, {"slowdown", 1.5}}});
    given["cluster"]["slow_links"] = Json::array({slow_nic(1, 4.0)});
    const Scenario unfolded = scenario_from(given, {.fold = false});
    const Report each = summarise(unfolded, simulate(unfolded));
    const Report folded = report_of(given);
    INFO(fidelity);
    CHECK(folded.iteration.picoseconds() == each.iteration.picoseconds());
    CHECK(folded.disturbance.waiting.max.picoseconds() == each.disturbance.waiting.max.picoseconds());
    CHECK(folded.disturbance.waiting.mean.picoseconds() == each.disturbance.waiting.mean.picoseconds());
  }
}

}  // namespace lockstep::disturbance_test
