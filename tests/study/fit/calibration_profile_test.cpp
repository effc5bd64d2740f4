#include "sim/study/fit/calibration_profile.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sim/load/hardware/read_calibration.h"
#include "sim/load/hardware/write_calibration.h"
#include "tests/support/benchmark_log.h"
#include "tests/support/scenarios.h"

namespace lockstep::calibration_profile_test {

constexpr Bytes kibibyte{1024};
constexpr Bytes mebibyte{1024 * 1024};

MeasuredTable table_of(const std::string& group, CollectiveOp op, std::int64_t nodes) {
  MeasuredTable table;
  table.id = "a table";
  table.source = "somewhere";
  table.group = group;
  table.machine = "dgx1_v100";
  table.op = op;
  table.nodes = nodes;
  table.gpus_per_node = 8;
  table.library_version = nodes > 1 ? "2.18.3" : "2.12";
  for (Bytes size = kibibyte; size <= mebibyte; size = size * 2)
    table.rows.push_back({size, Duration::microseconds(10)});
  return table;
}

std::vector<MeasuredTable> three_tables() {
  return {table_of("here", CollectiveOp::all_reduce, 1), table_of("here", CollectiveOp::all_reduce, 2),
          table_of("there", CollectiveOp::all_gather, 2)};
}

// Figures of more digits than a profile states.
CommunicationFit some_fit() {
  CommunicationFit fit;
  fit.calibration = known_calibration({});
  fit.calibration.name = "dgx1_v100";
  fit.calibration.collective_launch = Duration::picoseconds(5'234'567);
  fit.calibration.efficiency[LinkClass::nvlink] = Ratio::parts_per_million(823'456);
  fit.calibration.peer = {.start = Duration::picoseconds(1'234'567),
                          .channel_bandwidth = Bandwidth{14'765'432'100},
                          .ramp = Duration::picoseconds(98'765'432)};
  fit.calibration.algorithms = {{.name = "tree",
                                 .launch = Duration::zero(),
                                 .step_scale = Ratio::parts_per_million(1'234'567),
                                 .efficiency = Ratio::parts_per_million(987'654)}};
  fit.calibration.host_launch = Duration::picoseconds(4'444'444);
  fit.calibration.sm_interference = Ratio::parts_per_million(13'312'345);
  fit.calibration.copy_per_tensor = Duration::nanoseconds(4500);
  fit.calibration.copy_bandwidth = Bandwidth{30'000'000'000};
  fit.calibration.rank_variation = Ratio::parts_per_million(12'345);
  fit.calibration.host_per_bucket = Duration::microseconds(18);
  fit.calibration.compute_residual = ResidualBand{.low = Ratio::percent(-5), .high = Ratio::percent(2)};
  return fit;
}

Calibration read_back(const nlohmann::ordered_json& json) {
  JsonDocument document = JsonDocument::from_text(json.dump(2), "profile");
  LoadContext context{.store = shipped_profiles(), .folder = ""};
  Calibration calibration = read_calibration(document.root(), {.context = context, .pointer = ""});
  document.throw_if_problems();
  return calibration;
}

std::vector<ErrorSample> samples_at(Bytes size, const std::vector<double>& ratios) {
  std::vector<ErrorSample> samples;
  for (const double ratio : ratios) samples.push_back({.size = size, .measured_over_predicted = ratio});
  return samples;
}

TEST_CASE("a profile reads back to the figures it states") {
  const std::vector<MeasuredTable> tables = three_tables();
  const CommunicationFit fit = some_fit();
  const ProfileFacts facts{
      .name = "mine",
      .tables = tables,
      .residuals = {{.low = Ratio::percent(-10), .high = Ratio::percent(20), .from = Bytes{0}},
                    {.low = Ratio::percent(-5), .high = Ratio::percent(4), .from = mebibyte}},
      .residual_source = "invented"};
  const nlohmann::ordered_json profile = write_profile(fit, facts);
  CHECK(write_calibration(read_back(profile)) == write_calibration(calibration_of_profile(fit, facts)));
}

TEST_CASE("communication is stated to four digits and computing as it was") {
  const std::vector<MeasuredTable> tables = three_tables();
  const CommunicationFit fit = some_fit();
  const Calibration calibration = calibration_of_profile(fit, {.name = "mine", .tables = tables});
  CHECK(calibration.collective_launch == Duration::picoseconds(5'235'000));
  CHECK(calibration.efficiency.at(LinkClass::nvlink) == Ratio::parts_per_million(823'500));
  CHECK(calibration.peer.channel_bandwidth == Bandwidth{14'770'000'000});
  CHECK(calibration.algorithms.front().step_scale == Ratio::parts_per_million(1'235'000));
  CHECK(calibration.sm_interference == fit.calibration.sm_interference);
  CHECK(calibration.rank_variation == fit.calibration.rank_variation);
  CHECK(calibration.compute_residual->low == Ratio::percent(-5));
  CHECK(write_calibration(rounded_communication(calibration)) == write_calibration(calibration));
}

TEST_CASE("a profile says what it was fitted to and what it was not") {
  const std::vector<MeasuredTable> tables = three_tables();
  const nlohmann::ordered_json profile =
      write_profile(some_fit(), {.name = "mine", .tables = tables, .residual_source = "invented"});
  CHECK(profile["name"] == "mine");
  CHECK(profile["source"] == "fitted to 33 points in 3 tables (3 cells) of here, there");  // 1 KiB to 1 MiB
  CHECK(profile["sources"]["residuals"] == "invented");
  CHECK(profile["sources"]["compute"].get<std::string>().ends_with("as calibration dgx1_v100"));
  CHECK(profile["fitted"]["smallest"] == "1 KiB");
  CHECK(profile["fitted"]["largest"] == "1 MiB");
  CHECK(profile["fitted"]["most_ranks"] == 16);
  CHECK(profile["fitted"]["most_nodes"] == 2);
  CHECK(profile["library_version"] == "2.18.3");  // of two tables out of three
  CHECK_FALSE(profile.contains("core_time_per_byte"));
}

TEST_CASE("a release that no table names is the one that was taken for its group") {
  std::vector<MeasuredTable> tables{table_of("here", CollectiveOp::all_reduce, 1)};
  tables.front().library_version.clear();
  CommunicationFit fit = some_fit();
  fit.release["here"] = 21'403;
  CHECK(calibration_of_profile(fit, {.name = "mine", .tables = tables}).library_version == 21'403);
}

TEST_CASE("a band is the 10th and the 90th percentile of measured over predicted, less one") {
  // Ten samples of one weight: the first and the ninth in order.
  const auto bands =
      residual_bands(samples_at(mebibyte, {1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07, 1.08, 1.09, 1.10}));
  CHECK(bands.back().from == mebibyte);
  CHECK(bands.back().low == Ratio::percent(1));
  CHECK(bands.back().high == Ratio::percent(9));
}

TEST_CASE("there is a band for each class of sizes, and one of few samples takes all of them") {
  auto samples = samples_at(mebibyte, {0.9, 0.9, 0.9, 0.9, 0.9, 0.9});
  for (const ErrorSample& sample : samples_at(kibibyte, {1.5, 1.5, 1.5, 1.5})) samples.push_back(sample);
  const auto bands = residual_bands(samples);
  REQUIRE(bands.size() == 3);
  for (const ResidualBand& few : {bands[0], bands[1]}) {
    CHECK(few.low == Ratio::percent(-10));
    CHECK(few.high == Ratio::percent(50));
  }
  CHECK(bands[2].low == Ratio::percent(-10));
  CHECK(bands[2].high == Ratio::percent(-10));
  CHECK(bands[1].from == first_of(SizeClass::middle));
  CHECK(residual_bands({}).empty());
}

TEST_CASE("a cell of many points has the vote of a cell of few") {
  std::vector<ErrorSample> samples;
  for (int point = 0; point < 95; ++point) samples.push_back({mebibyte, 1.0, 1.0 / 95});
  for (int point = 0; point < 5; ++point) samples.push_back({mebibyte, 1.4, 1.0 / 5});
  CHECK(residual_bands(samples).back().high == Ratio::percent(40));
}

TEST_CASE("a band stays within what a calibration may say") {
  const auto bands = residual_bands(samples_at(kibibyte, {-4, -4, -4, 500, 500, 500}));
  CHECK(bands.front().low == Ratio::parts_per_million(-999'000));
  CHECK(bands.front().high == Ratio::one() * 100);
}

TEST_CASE("constants are named as in the profile, and what costs nothing is no constant") {
  CommunicationFit fit = some_fit();
  const auto constants = calibration_constants(rounded_communication(fit.calibration));
  const auto value_of = [&](const std::string& name) -> double {
    for (const CalibrationConstant& constant : constants)
      if (constant.name == name)
        return constant.value;
    return -1;
  };
  CHECK(value_of("collective_launch") == doctest::Approx(5.235));
  CHECK(value_of("protocols.ll.step.nvlink") == doctest::Approx(1.1));
  CHECK(value_of("algorithms.tree.step_scale") == doctest::Approx(1.235));
  CHECK(value_of("algorithms.tree.launch") == -1);
  CHECK(value_of("protocols.ll.launch") == -1);
}

}  // namespace lockstep::calibration_profile_test
