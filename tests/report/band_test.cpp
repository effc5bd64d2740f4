#include "sim/report/band.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/report/prediction.h"
#include "tests/support/two_hosts.h"

namespace lockstep::band_test {

using Json = nlohmann::ordered_json;

Report report_with(LoadedScenario scenario, const ErrorModel& errors) {
  scenario.errors = errors;
  return predict(scenario).report;
}

ErrorModel measured_by(const ErrorRange& range) {
  ErrorModel errors;
  errors.measured = range;
  return errors;
}

double ratio(Duration end, const Report& report) {
  return end.in_seconds() / report.iteration.in_seconds();
}

LoadedScenario one_rank() {
  Json given = two_hosts(Json::object());
  given["cluster"]["nodes"] = 1;
  given["training"] = {{"strategy", "single"}};
  return scenario_from(given);
}

bool warns_that(const Report& report, std::string_view sentence) {
  const auto is_it = [&](const std::string& warning) { return warning.starts_with(sentence); };
  return std::count_if(report.warnings.begin(), report.warnings.end(), is_it) == 1;
}

TEST_CASE("The band of a measured step is that of measuring again, stretched by the factor in logarithms") {
  ErrorModel errors = measured_by({Ratio::percent(-10), Ratio::percent(21)});
  errors.factor = Ratio::percent(50);
  const Report report = report_with(one_rank(), errors);
  CHECK(ratio(report.times.high.value(), report) == doctest::Approx(std::sqrt(1.21)).epsilon(1e-5));
  CHECK(ratio(report.times.low.value(), report) == doctest::Approx(std::sqrt(0.9)).epsilon(1e-5));
  CHECK(report.band->communication_of_iteration.high == 0);
}

// Computing at +20 % makes 60 ms of the 50 before the first message, and messages at +10 % take 12 ms more of the 170.
TEST_CASE("Computing and communication add as the root of squares of what each makes of the iteration") {
  LoadedScenario scenario = scenario_from(two_hosts(Json::object()));
  scenario.cluster.calibration.communication_residuals = {{.low = Ratio{}, .high = Ratio::percent(10)}};
  ErrorModel errors = measured_by({Ratio{}, Ratio::percent(5)});
  errors.between_nodes = {Ratio{}, Ratio::percent(20)};  // of one node more, a doubling
  const Report report = report_with(scenario, errors);
  const double again = std::log(1.05);
  const double computing = std::log(180.0 / 170);
  const double messages = std::log(182.0 / 170);
  CHECK(std::log(ratio(report.times.high.value(), report)) ==
        doctest::Approx(std::hypot(again, computing, messages)).epsilon(1e-4));
  CHECK(report.times.low.value() == report.iteration);
}

// ResNet-50 on an A100: of one image its kernels are over before a host of 200 us has issued the next, of 256 one of
// 6 us is always ahead.
LoadedScenario issued_by(const char* operator_time, std::int64_t batch) {
  Json machine{{"based_on", "dgx_a100_80gb"}};
  machine["host"]["operator_time"] = operator_time;
  return scenario_from({{"cluster", {{"machine", machine}, {"gpus_per_node", 1}}},
                        {"model", {{"name", "resnet50"}, {"batch_per_gpu", batch}, {"precision", "bf16"}}},
                        {"training", {{"strategy", "single"}, {"optimizer", "momentum"}}}});
}

TEST_CASE("A step that its host sets the pace of may be off by as much as the host may") {
  ErrorModel errors;
  errors.host = {Ratio::percent(-10), Ratio::percent(21)};
  const Report report = report_with(issued_by("200 us", 1), errors);
  CHECK(ratio(report.times.high.value(), report) == doctest::Approx(1.21).epsilon(1e-4));
  CHECK(ratio(report.times.low.value(), report) == doctest::Approx(0.9).epsilon(1e-4));
}

TEST_CASE("A host that is ahead counts once it might fall behind") {
  ErrorModel errors;
  errors.host = {Ratio::percent(-50), Ratio::percent(1)};
  const LoadedScenario ahead = issued_by("6 us", 256);
  const Report as_it_is = report_with(ahead, errors);
  CHECK(as_it_is.times.low == as_it_is.iteration);
  CHECK(as_it_is.times.high == as_it_is.iteration);
  errors.host.high = Ratio::one() * 99;
  const double behind = predict(issued_by("600 us", 256)).report.iteration.in_seconds();
  CHECK(report_with(ahead, errors).times.high->in_seconds() == doctest::Approx(behind).epsilon(1e-4));
}

TEST_CASE("Residuals that lie on one side of the prediction leave it in the band") {
  LoadedScenario scenario = scenario_from(two_hosts(Json::object()));
  scenario.cluster.calibration.communication_residuals = {
      {.low = Ratio::percent(30), .high = Ratio::percent(50)}};
  const Report report = report_with(scenario, {});
  CHECK(report.times.low.value() == report.iteration);
  CHECK(report.times.high.value() > report.iteration);
}

TEST_CASE("Without an error model there is no band, and a warning says so") {
  LoadedScenario scenario = one_rank();
  scenario.errors.reset();
  const Report report = predict(scenario).report;
  CHECK_FALSE(report.times.low.has_value());
  CHECK_FALSE(report.band.has_value());
  CHECK(warns_that(report, "no residuals are known for steps (hw_profiles/errors)"));
}

TEST_CASE("A long run's band is as wide, in proportion, as that of the iteration it shows") {
  Json given = two_hosts(Json::object());
  given["simulation"]["iterations"] = 500;
  LoadedScenario many = scenario_from(given);
  LoadedScenario few = scenario_from(two_hosts(Json::object()));
  const ErrorModel errors = measured_by({Ratio::percent(-10), Ratio::percent(20)});
  for (LoadedScenario* scenario : {&many, &few})
    scenario->cluster.calibration.communication_residuals = {{.low = Ratio{}, .high = Ratio::percent(10)}};
  const Report of_many = report_with(many, errors);
  const Report of_few = report_with(few, errors);
  CHECK(ratio(of_many.times.high.value(), of_many) ==
        doctest::Approx(ratio(of_few.times.high.value(), of_few)).epsilon(1e-6));
}

}  // namespace lockstep::band_test
