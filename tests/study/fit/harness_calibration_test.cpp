// A run made from known constants gives them back; what a run cannot tell is said.

#include "sim/study/fit/harness_calibration.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "tests/scenario/lab.h"
#include "tests/support/harness_run_file.h"
#include "tests/support/scenarios.h"

namespace lockstep::harness_calibration_test {

using nlohmann::json;
using testing::Folder;
using testing::harness_run;
using testing::KnownRun;

HarnessRun read(const json& run) {
  const Folder folder;
  return read_harness_run(folder.write("run.json", run.dump()));
}

HarnessCalibration calibrated(const std::vector<json>& files, Duration link_latency = {}) {
  std::vector<HarnessRun> runs;
  for (const json& file : files) runs.push_back(read(file));
  return calibrate_to_runs(runs, {.name = "mine", .link_latency = link_latency}, shipped_profiles());
}

bool warns(const HarnessCalibration& report, const std::string& part) {
  return std::any_of(report.warnings.begin(), report.warnings.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

double step_us(const HarnessCalibration& report) {
  return report.calibration.protocols.front().step.at(LinkClass::network).in_seconds() * 1e6;
}

// Shared where all-reduces want 3 / 10.2 of a core and may have half of it: they are never held up.
TEST_CASE("the constants a run was made from are found within one percent") {
  const KnownRun known;
  const Calibration found = calibrated({harness_run(known)}).calibration;
  const auto percent = [](double value) { return doctest::Approx(value).epsilon(0.01); };
  CHECK(found.protocols.front().step.at(LinkClass::network).in_seconds() == percent(known.step_s));
  CHECK(static_cast<double>(found.unhidden_per_byte_ps) * 1e-12 == percent(known.unhidden_s));
  CHECK(found.copy_per_tensor.in_seconds() == percent(known.copy_per_tensor_s));
  CHECK(1 / static_cast<double>(found.copy_bandwidth->count()) == percent(known.copy_per_byte_s));
  CHECK(static_cast<double>(found.core_time_per_byte_ps) * 1e-12 == percent(known.core_per_byte_s));
}

// Deciles lie 2.563 deviations apart, and the median of two draws varies by sqrt(1 / 2) of one: within the
// seventh of the variance that the closed form is off.
TEST_CASE("how much one rank's step varies is read off the spread of the ranks' median") {
  json file = harness_run();
  const double deviation = 0.001;
  file["without_communication"]["iteration_s"] = testing::steps_of(0.031, 2.563 * deviation);
  const double of_one_rank = deviation / 0.031 * std::sqrt(2.0);
  const auto found = calibrated({file}).calibration.rank_variation.value().in_real();
  CHECK(found == doctest::Approx(of_one_rank).epsilon(0.07));
  CHECK(calibrated({harness_run()}).calibration.rank_variation == Ratio{});
}

// Alone on the core a copy takes 0.1 ns a byte; where a neighbour shares it, copies longer than the
// scheduler's slice take twice that, shorter ones seem not to. In a step all share.
TEST_CASE("copies long enough to share their core tell what copying takes") {
  json file = harness_run({.copy_per_tensor_s = 0});
  file["bucket_copies"] = json::array();
  for (const double bytes : {65536.0, 1048576.0, 67108864.0, 134217728.0})
    file["bucket_copies"].push_back(
        {{"tensors", 1},
         {"bytes", bytes},
         {"time_s", testing::statistics(bytes * (bytes > 60e6 ? 0.2e-9 : 0.1e-9))}});
  const auto bandwidth = calibrated({file}).calibration.copy_bandwidth;
  CHECK(1 / static_cast<double>(bandwidth->count()) == doctest::Approx(0.2e-9).epsilon(0.03));
}

// 8 ns of 10.2 ns a byte is 0.78 of a core, of which all-reduces get 0.4: two in flight, each a quarter
// against the rest.
TEST_CASE("where computing holds all-reduces up, their share of the core shows") {
  const KnownRun known{.core_per_byte_s = 8e-9, .core_share = 0.4};
  const HarnessCalibration report = calibrated({harness_run(known)});
  CHECK(report.calibration.core_share.in_real() == doctest::Approx(0.25).epsilon(0.01));
  CHECK(report.calibration.core_time_per_byte_ps == doctest::Approx(8'000).epsilon(0.01));
  CHECK_FALSE(warns(report, "core_share is not fitted"));
  CHECK(warns(calibrated({harness_run()}), "core_share is not fitted"));
}

// Alone a byte takes 10.2 ns; if computing loses 20 ns a byte, more than core time is at work.
TEST_CASE("core time never exceeds what a byte takes alone") {
  json file = harness_run();
  const double bytes = 4 << 20;
  file["interference"][0]["compute_beside_s"] = 0.2;
  file["interference"][0]["collective_beside_s"] = bytes * 40e-9;
  const HarnessCalibration report = calibrated({file});
  CHECK(report.calibration.core_time_per_byte_ps == doctest::Approx(10'200).epsilon(0.01));
  CHECK(warns(report, "something besides core time"));
}

TEST_CASE("a step's cost is what lies beyond the link's own latency") {
  CHECK(step_us(calibrated({harness_run()}, Duration::microseconds(100))) ==
        doctest::Approx(50).epsilon(0.01));
  const HarnessCalibration slower = calibrated({harness_run()}, Duration::microseconds(200));
  CHECK(step_us(slower) == 0);
  CHECK(warns(slower, "give the machine a lower latency"));
}

TEST_CASE("runs have one vote each, and are told of where they disagree") {
  const HarnessCalibration report =
      calibrated({harness_run({.name = "a", .step_s = 100e-6}), harness_run({.name = "b", .step_s = 150e-6}),
                  harness_run({.name = "c", .step_s = 400e-6})});
  CHECK(step_us(report) == doctest::Approx(150).epsilon(0.01));
  CHECK(warns(report, "disagree about what a ring step costs"));
}

TEST_CASE("the time a byte beyond the wire's own is one figure for links of all rates") {
  const HarnessCalibration report = calibrated(
      {harness_run({.name = "slow", .goodput = 25e6}), harness_run({.name = "fast", .goodput = 125e6})});
  CHECK(report.calibration.unhidden_per_byte_ps == doctest::Approx(200).epsilon(0.01));
}

// 9 ns a byte where the run states 10: a profile that took the link for wider could not be read again.
TEST_CASE("runs that moved more than they state of their links get no more than the wire, and are told") {
  const HarnessCalibration report = calibrated({harness_run({.goodput = 100e6, .unhidden_s = -1e-9})});
  CHECK(report.calibration.efficiency.at(LinkClass::network) == Ratio::one());
  CHECK(report.calibration.unhidden_per_byte_ps == 0);
  CHECK(warns(report, "moved 1.111 times what they state"));
}

// The iterations are what a calibration is judged by.
TEST_CASE("what was measured of iterations never enters a calibration") {
  json other = harness_run();
  other["iterations"] = {testing::iteration_of(1, 17.0)};
  CHECK(calibrated({other}).profile == calibrated({harness_run()}).profile);
}

TEST_CASE("the profile, as the simulator reads it, predicts the points it was made from") {
  const HarnessCalibration report = calibrated({harness_run({.core_per_byte_s = 8e-9, .core_share = 0.4})});
  REQUIRE(report.points.size() == 8 + 3 + 2);  // curve, copies, computing and all-reduces beside each other
  for (const HarnessPoint& point : report.points) {
    CAPTURE(point.what);
    CAPTURE(point.bytes.count());
    CHECK(point.predicted_s == doctest::Approx(point.measured_s).epsilon(0.01));
  }
}

TEST_CASE("a disturbed point moves no constant") {
  json file = harness_run();
  file["collective_curve"][6]["time_s"] = testing::statistics(3.0);  // of 4 MiB, 70 times too slow
  CHECK(calibrated({file}).calibration.unhidden_per_byte_ps == doctest::Approx(200).epsilon(0.01));
}

TEST_CASE("runs without all-reduces have nothing to fit to") {
  json file = harness_run();
  file["collective_curve"] = json::array();
  CHECK_THROWS_AS(calibrated({file}), ConfigError);
}

TEST_CASE("where nobody knows the link, what all-reduces reach is taken for it") {
  json file = harness_run();
  file["network"]["goodput_byte_s"] = nullptr;
  const HarnessRun run = read(file);
  const KnownRun known;
  CHECK(static_cast<double>(link_of(run, figures_of(run)).count()) ==
        doctest::Approx(1 / known.per_byte_s()).epsilon(0.01));
  CHECK(static_cast<double>(link_of(run, figures_of(run), known.unhidden_s).count()) ==
        doctest::Approx(known.goodput).epsilon(0.01));
  CHECK(warns(calibrated({file}), "goodput is not known"));
}

}  // namespace lockstep::harness_calibration_test
