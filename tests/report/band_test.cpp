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
