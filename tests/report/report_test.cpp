// What a report says of a step whose every moment is known (two_hosts.h has the numbers).

#include "sim/report/report.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/report/prediction.h"
#include "tests/support/two_hosts.h"

namespace lockstep::report_test {

using Json = nlohmann::ordered_json;

Report report_of(const Scenario& scenario) {
  return summarise(scenario, simulate(scenario));
}

bool warns_that(const Report& report, std::string_view sentence) {
  const auto is_it = [&](const std::string& warning) { return warning.starts_with(sentence); };
  return std::count_if(report.warnings.begin(), report.warnings.end(), is_it) == 1;
}

// Gradients are on the wire from 50 to 170 ms, and computing ends at 90.
TEST_CASE("communication is active, overlapped and exposed for what it is") {
  const Report report = report_of(scenario_from(two_hosts(Json::object())));
  CHECK(in_milliseconds(report.communication.total) == 120);
  CHECK(in_milliseconds(report.communication.overlapped) == 40);
  CHECK(in_milliseconds(report.breakdown.forward) == 30);
  CHECK(in_milliseconds(report.breakdown.backward) == 60);
  CHECK(in_milliseconds(report.breakdown.exposed_communication) == 80);
  CHECK(in_milliseconds(report.communication.buckets[0].exposed) == 0);
  CHECK(in_milliseconds(report.communication.buckets[1].exposed) == 40);
  CHECK(in_milliseconds(report.communication.buckets[2].exposed) == 40);
}

// The bus factor of an all-reduce of two is 2 (2 - 1) / 2 = 1: the wire's own rate.
TEST_CASE("a bucket's bus bandwidth and a rank's bytes follow from its size, time and ranks") {
  const Report report = report_of(scenario_from(two_hosts(Json::object())));
  for (const BucketReport& bucket : report.communication.buckets)
    CHECK(bucket.busbw == Bandwidth{100'000'000});
  CHECK(report.communication.bytes_per_gpu == Bytes{12'000'000});
}

TEST_CASE("an algorithm that does not do all that is exchanged is told from one that does") {
  const auto warns = [](const char* algorithm) {
    Scenario scenario = scenario_from(two_hosts(Json::object()));
    scenario.communication.algorithm = algorithm;
    return warns_that(report_of(scenario),
                      fmt::format("communication.algorithm {} does no all_reduce:", algorithm));
  };
  CHECK(warns("relay"));
  CHECK_FALSE(warns("halving_doubling"));
  CHECK_FALSE(warns("auto"));
}

// Steps of 90 ms, and after each second one 120 ms of averaging: the lengths are 90, 90, 210 and 210.
TEST_CASE("an iteration is the mean of them, and the percentiles are those of the lengths") {
  Json given = two_hosts({{"strategy", "local_sgd"}, {"local_steps", 2}});
  given["simulation"]["iterations"] = 4;
  Scenario scenario = scenario_from(given);
  scenario.cluster.calibration.copy_bandwidth = Bandwidth{12'000'000'000};  // 1 ms either way
  const Report report = report_of(scenario);
  CHECK(report.iteration == Duration::milliseconds((2 * 90 + 2 * 212) / 4));
  CHECK(report.times.p5 == Duration::milliseconds(90));
  CHECK(report.times.p50 == Duration::milliseconds(90));
  CHECK(report.times.p95 == Duration::milliseconds(212));
  CHECK(report.times.longest == Duration::milliseconds(212));
  CHECK(report.communication.total == Duration::milliseconds(60));
  CHECK(report.breakdown.gradient_copy == Duration::milliseconds(1));
  CHECK(report.communication.bytes_per_gpu == Bytes{6'000'000});
}

TEST_CASE("samples are those of all ranks and micro-batches") {
  Json given = two_hosts({{"gradient_accumulation", 3}});
  given["model"]["batch_per_gpu"] = 5;
  const Report report = report_of(scenario_from(given));
  CHECK(report.throughput.samples_per_iteration == 2 * 3 * 5);
  CHECK_FALSE(report.throughput.tokens_per_iteration.has_value());
  CHECK_FALSE(report.throughput.mfu.has_value());  // layers of stated times have no FLOPs
}

// Rank 1 computes 1.25 times as long: its gradients are there at 112.5 ms where rank 0's are at 90, and rank 0 waits
// for that difference; both then send for 120 ms.
TEST_CASE("who waits is told from what is sent") {
  Json given = two_hosts({{"bucket_cap_mb", 100}, {"first_bucket_mb", 100}});
  given["cluster"]["stragglers"] = Json::array({{{"rank", 1}, {"slowdown", 1.25}}});
  const Report report = report_of(scenario_from(given));
  CHECK(report.iteration.in_seconds() == doctest::Approx(0.1125 + 0.120).epsilon(1e-5));
  CHECK(report.disturbance.waiting.max.in_seconds() == doctest::Approx(0.0225).epsilon(1e-4));
  CHECK(report.disturbance.waiting.mean.in_seconds() == doctest::Approx(0.0225 / 2).epsilon(1e-4));
  CHECK(report.breakdown.straggler_wait ==
        report.disturbance.waiting.max);  // the first of those that end together
  CHECK(report.breakdown.exposed_communication.in_seconds() == doctest::Approx(0.120).epsilon(1e-4));
}

// At 100 % more of everything the wire has half its rate: 80 ms a bucket, from 50. At half nothing goes faster than
// the wire, which is full already. Computing misses nothing here.
TEST_CASE("the band runs from the cheap to the dear end of the residuals") {
  LoadedScenario scenario = scenario_from(two_hosts(Json::object()));
  scenario.errors = ErrorModel{};
  scenario.cluster.calibration.communication_residuals = {{.low = Ratio::percent(-50), .high = Ratio::one()}};
  const Report report = predict(scenario).report;
  REQUIRE(report.times.low);
  REQUIRE(report.times.high);
  CHECK(in_milliseconds(*report.times.low) == 170);
  CHECK(in_milliseconds(*report.times.high) == 50 + 3 * 80);
}

TEST_CASE("where no residual is known there is no band, and a warning says so") {
  LoadedScenario scenario = scenario_from(two_hosts(Json::object()));
  scenario.errors->communication.clear();
  const Report report = predict(scenario).report;
  CHECK_FALSE(report.times.low.has_value());
  CHECK_FALSE(report.times.high.has_value());
  CHECK(warns_that(report, "no residuals are known for none"));
}

TEST_CASE("where a calibration has no residuals the usual ones of messages stand in, and a warning says so") {
  LoadedScenario scenario = scenario_from(two_hosts(Json::object()));
  scenario.errors = ErrorModel{};
  scenario.errors->communication = {{.low = Ratio{}, .high = Ratio::one()}};
  const Report report = predict(scenario).report;
  CHECK(in_milliseconds(report.times.high.value()) == 50 + 3 * 80);
  CHECK(warns_that(report, "no calibration residuals are known for none: the band takes"));
}

// A bucket takes 40 ms from its turn on.
TEST_CASE("a collective that outlasts the timeout ends the run, with a warning") {
  Json given = two_hosts(Json::object());
  given["communication"]["timeout"] = "39 ms";
  const Report report = report_of(scenario_from(given));
  REQUIRE(report.disturbance.timed_out.has_value());
  const bool is_told = std::any_of(
      report.warnings.begin(), report.warnings.end(),
      [](const std::string& warning) { return warning.starts_with("the run ends in iteration 1: "); });
  CHECK(is_told);
}

}  // namespace lockstep::report_test
