// Runs that the simulator itself has made, on a machine of known constants: these are found again, and what is
// then predicted of the runs is what was run.

#include "sim/study/fit/harness_gpu_calibration.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "sim/report/report.h"
#include "sim/study/fit/harness_calibration.h"
#include "sim/study/harness/harness_scenario.h"
#include "sim/study/validation/validation.h"
#include "tests/support/nccl_run_file.h"

namespace lockstep::harness_gpu_calibration_test {

using nlohmann::json;
using testing::Folder;
using testing::nccl_run;
using testing::NcclTruth;

HarnessRun read(const json& run) {
  const Folder folder;
  return read_harness_run(folder.write("run.json", run.dump()));
}

CalibrationReport calibrated(const json& file, const std::string& machine = "dgx1_v100") {
  const HarnessRun run = read(file);
  return calibrate_to_gpu_runs({&run, 1}, {.machine = machine, .holds_nothing_out = true},
                               shipped_profiles());
}

std::string problem_of(const json& file, const std::string& machine = "dgx1_v100") {
  try {
    calibrated(file, machine);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

bool warns(const CalibrationReport& report, const std::string& part) {
  return std::any_of(report.warnings.begin(), report.warnings.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST_CASE("a run over NCCL is never fitted as Gloo over TCP") {
  const HarnessRun run = read(nccl_run());
  CHECK_THROWS_WITH_AS(calibrate_to_runs({&run, 1}, {.name = "mine"}, shipped_profiles()),
                       doctest::Contains("found NCCL"), ConfigError);
  const CalibrationReport report = calibrated(nccl_run());
  const auto is_tcp = [](const ProtocolCost& protocol) { return protocol.name == "tcp"; };
  CHECK(std::none_of(report.calibration.protocols.begin(), report.calibration.protocols.end(), is_tcp));
  CHECK(report.calibration.protocols.size() == 3);
}

TEST_CASE("the all-reduces of a run are met by the constants fitted to them") {
  const CalibrationReport report = calibrated(nccl_run());
  REQUIRE(report.points.size() == read(nccl_run()).curve.size());
  std::vector<double> errors;
  for (const HeldOutPoint& point : report.points) errors.push_back(std::abs(point.error()));
  std::sort(errors.begin(), errors.end());
  CHECK(errors[errors.size() / 2] < 0.02);
  CHECK(errors.back() < 0.1);
}

TEST_CASE("computing's slow-down beside all-reduces is parted into bandwidth and SMs") {
  const NcclTruth truth;
  const Calibration found = calibrated(nccl_run(truth)).calibration;
  CHECK(found.compute_slowdown.value().in_real() == doctest::Approx(truth.slowdown).epsilon(0.02));
  CHECK(found.sm_interference.value().in_real() == doctest::Approx(truth.sm_interference).epsilon(0.02));
}

TEST_CASE("without copies beside computing all of the slow-down holds beside any collective") {
  json file = nccl_run();
  file["copy_interference"] = nullptr;
  const CalibrationReport report = calibrated(file);
  const json& point = file["interference"][0];
  CHECK(report.calibration.compute_slowdown.value().in_real() ==
        doctest::Approx(point["compute_beside_s"].get<double>() / point["compute_alone_s"].get<double>())
            .epsilon(0.001));
  CHECK(report.calibration.sm_interference == Ratio{});
  CHECK(warns(report, "cannot be told apart"));
}

TEST_CASE("copies into buckets are the run's own") {
  const NcclTruth truth;
  const Calibration found = calibrated(nccl_run(truth)).calibration;
  CHECK(found.copy_per_tensor.in_seconds() == doctest::Approx(truth.copy_per_tensor_s).epsilon(0.01));
  CHECK(1 / static_cast<double>(found.copy_bandwidth->count()) ==
        doctest::Approx(truth.copy_per_byte_s).epsilon(0.01));
}

// One all-reduce beside computing, and three copies.
TEST_CASE("what the profile makes of computing and of copies is told point by point") {
  const CalibrationReport report = calibrated(nccl_run());
  REQUIRE(report.computing_points.size() == 1 + 3);
  for (const ComputingPoint& point : report.computing_points) {
    CAPTURE(point.what);
    CHECK(point.predicted_s == doctest::Approx(point.measured_s).epsilon(0.01));
  }
  CHECK(to_text(report).find("compute beside") != std::string::npos);
  CHECK(to_json(report)["computing_points"].size() == 4);
}

TEST_CASE("what was measured of iterations never enters a calibration") {
  json other = nccl_run();
  other["iterations"] = {testing::iteration_of(1, 17.0)};
  nlohmann::ordered_json found = calibrated(other).profile;
  nlohmann::ordered_json expected = calibrated(nccl_run()).profile;
  found.erase("sources");  // they name the file
  expected.erase("sources");
  CHECK(found == expected);
}

TEST_CASE("runs that say nothing of a machine's communication are refused with the reason") {
  json shared = nccl_run();
  shared["machine"]["gpus_shared"] = true;
  CHECK(problem_of(shared).find("/machine/gpus_shared: found true") != std::string::npos);
  json gloo = nccl_run();
  gloo["harness"]["communication"] = "Gloo 0.5.0";
  CHECK(problem_of(gloo).find("/harness/communication: found Gloo") != std::string::npos);
  json alone = nccl_run();
  alone["collective_curve"] = json::array();
  CHECK(problem_of(alone).find("no all-reduce of several ranks") != std::string::npos);
  CHECK(problem_of(nccl_run(), "p100_4gpu_25gbe").find("found 8 on each node") != std::string::npos);
  CHECK(problem_of(nccl_run(), "cpu_gloo").find("a cpu_gloo runs Gloo") != std::string::npos);
}

const ValidationCase& case_named(const Validation& validation, const std::string& name) {
  const auto found = std::find_if(validation.cases.begin(), validation.cases.end(),
                                  [&](const ValidationCase& entry) { return entry.name == name; });
  REQUIRE_MESSAGE(found != validation.cases.end(), name);
  return *found;
}

Validation validated(const json& file, const std::string& calibration = "") {
  const Folder folder;
  return validate({.files = {},
                   .runs = {folder.write("run.json", file.dump())},
                   .machine = "dgx1_v100",
                   .calibration = calibration,
                   .data_directory = LOCKSTEP_SOURCE_DIR});
}

// The shipped calibration is of another machine than the run's: it misses by three times what the run's own may.
TEST_CASE("iterations over NCCL are predicted from the run's own microbenchmarks") {
  const json file = nccl_run();
  const Validation own = validated(file);
  const Validation shipped = validated(file, "dgx1_v100");
  constexpr double bound = 3;
  for (const char* name : {"nccl cap 1", "nccl cap 5", "nccl cap 25"}) {
    CAPTURE(name);
    CHECK(std::abs(case_named(own, name).error_percent()) < bound);
  }
  for (const char* name : {"nccl cap 5", "nccl cap 25"}) {  // a launch costs both machines as much
    CAPTURE(name);
    CHECK(std::abs(case_named(shipped, name).error_percent()) > 3 * bound);
  }
}

TEST_CASE("a run on shared GPUs is told of and not predicted, and so is what failed") {
  json file = nccl_run();
  file["failed"] = {{{"measurement", "interference"}, {"bytes", 1 << 20}, {"reason", "all-reduces ran out"}}};
  const Validation told = validated(file);
  CHECK(told.notes.at(0) == "nccl: interference of 1.0 MiB failed and is left out: all-reduces ran out");
  file["machine"]["gpus_shared"] = true;
  const Validation shared = validated(file);
  CHECK(shared.cases.empty());
  CHECK(shared.notes.back().find("took turns on a GPU") != std::string::npos);
}

}  // namespace lockstep::harness_gpu_calibration_test
