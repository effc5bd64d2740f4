// Does calibrating find out what is so: logs of a machine whose constants are known.

#include "sim/study/fit/calibration_report.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/scenario/lab.h"
#include "tests/support/benchmark_log.h"
#include "tests/support/scenarios.h"

namespace lockstep::calibration_report_test {

using testing::Folder;

const Calibration& truth() {
  static const Calibration calibration = known_calibration(
      load_collective_setting({.machine = "dgx1_v100"}, shipped_profiles()).cluster.calibration);
  return calibration;
}

CalibrationInputs inputs_of(const std::vector<BenchmarkRun>& runs) {
  const Folder folder;
  CalibrationRequest request{.files = {}, .machine = runs.front().machine};
  for (const BenchmarkRun& run : runs) {
    const std::string name = fmt::format("{}_{}.log", run.test, run.nodes);
    request.files.push_back(folder.write(name, benchmark_log(run, truth(), shipped_profiles())));
  }
  return read_calibration_inputs(request, shipped_profiles());
}

CalibrationReport calibrate_runs(const std::vector<BenchmarkRun>& runs) {
  return calibrate(inputs_of(runs), shipped_profiles());
}

BenchmarkRun gathering(std::int64_t nodes) {
  return {.nodes = nodes, .op = CollectiveOp::all_gather, .test = "all_gather_perf"};
}

TEST_CASE("what is fitted to a machine of known constants predicts it within 2 % at every size") {
  const CalibrationInputs inputs =
      inputs_of({{.nodes = 1}, {.nodes = 2}, {.nodes = 4}, gathering(1), gathering(2)});
  const TableSet tables(inputs.tables, shipped_profiles());
  CHECK(tables.size() > 100);
  for (const FittedPoint& point : tables.predict(tables.fit(usual_prior(tables.constants())))) {
    CAPTURE(point.table->cell());
    CAPTURE(point.measured.size.count());
    CAPTURE(point.protocol);
    CHECK(std::abs(point.error()) < 0.02);
  }
}

TEST_CASE("each cell is left out once, and the bands are those of its points") {
  const CalibrationReport report = calibrate_runs({{.nodes = 1}, gathering(1)});
  CHECK(report.held_out.size() == report.points.size());
  CHECK(to_json(report)["held_out_error"].size() == 3);
  const std::string source = report.profile["sources"]["residuals"];
  CHECK(source.find("predicted by a fit to the others") != std::string::npos);
  CHECK(report.warnings.size() == 2);  // one number of ranks, one node
}

TEST_CASE("one table is fitted too, with wider bands and a word on what it cannot tell") {
  const CalibrationReport report = calibrate_runs({{.nodes = 1}});
  for (const HeldOutPoint& point : report.points) CHECK(std::abs(point.error()) < 0.02);
  CHECK(report.held_out.empty());
  CHECK(report.warnings.size() == 3);  // one number of ranks, one collective, one node
  const std::string source = report.profile["sources"]["residuals"];
  CHECK(source.find("widened by the factor 1.5") != std::string::npos);
}

TEST_CASE("the report lists every point once and states the profile it is about") {
  const CalibrationReport report = calibrate_runs({{.nodes = 1}});
  const nlohmann::ordered_json json = to_json(report);
  CHECK(json["schema"] == "lockstep.calibration_report/1");
  CHECK(json["points"].size() == report.points.size());
  CHECK(json["profile"] == report.profile);
  CHECK(json["held_out_error"].empty());
  const std::string text = to_text(report);
  for (const char* part : {"Constants", "link_efficiency.nvlink", "Residuals", "below 64 KiB", "single cell"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
}

}  // namespace lockstep::calibration_report_test
