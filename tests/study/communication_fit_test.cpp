// Tables made from known constants are explained by what is fitted to them, and what is no constant of the machine
// stays with whom it belongs to.

#include "sim/study/fit/communication_fit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/scenarios.h"

namespace lockstep::communication_fit_test {

const std::vector<std::int64_t> sizes{1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26, 1 << 28};

MeasuredTable table_of(const std::string& group, CollectiveOp op = CollectiveOp::all_reduce) {
  MeasuredTable table{.group = group, .machine = "dgx_a100_80gb", .op = op, .gpus_per_node = 8};
  table.library_version = "2.18.3";
  for (const std::int64_t size : sizes) table.rows.push_back({Bytes{size}, Duration::microseconds(10)});
  return table;
}

// Of the usual constants, with launches of so many microseconds and so much of what links usually carry.
CommunicationFit fit_of(double launch_us, double share) {
  CommunicationFit fit;
  fit.calibration = blank_communication({});
  const MachineSpec machine = cluster_scenario("dgx_a100_80gb", 1).cluster.machine;
  for (const CommunicationConstant* constant : constants_of(machine)) {
    const bool is_launch = constant->key == "launch";
    const bool is_share = constant->part == MachinePart::in_node && constant->key == "efficiency";
    const double value = is_launch ? launch_us : constant->usual * (is_share ? share : 1);
    constant->put(fit.calibration, classes_in_node(machine), value);
  }
  return fit;
}

CommunicationFit known_fit() {
  return fit_of(11, 0.75);
}

std::vector<FittedPoint> predicted(const std::vector<MeasuredTable>& tables, const CommunicationFit& fit) {
  return TableSet(tables, shipped_profiles()).predict(fit);
}

// What the known machine takes for each row.
MeasuredTable measured_table() {
  MeasuredTable table = table_of("here");
  const std::vector<FittedPoint> points = predicted({table}, known_fit());
  for (std::size_t row = 0; row < table.rows.size(); ++row)
    table.rows[row].time = Duration::picoseconds(std::llround(points[row].predicted_s * 1e12));
  return table;
}

double worst_error(const std::vector<FittedPoint>& points) {
  double worst = 0;
  for (const FittedPoint& point : points) worst = std::max(worst, std::abs(point.error()));
  return worst;
}

TEST_CASE("a table made from known constants is explained within 3 %, which the usual ones do not") {
  const std::vector<MeasuredTable> tables{measured_table()};
  const TableSet set(tables, shipped_profiles());
  const CommunicationFit fit = set.fit(usual_prior(set.constants()));
  CHECK(fit.points == sizes.size());
  CHECK(worst_error(set.predict(fit)) < 0.03);
  CHECK(worst_error(predicted(tables, fit_of(7, 1))) > 0.1);
}

// One row ten times too slow is of another mode of the system: the others keep their constants.
TEST_CASE("a wild row moves the others little") {
  std::vector<MeasuredTable> tables{measured_table()};
  constexpr std::size_t wild = 3;
  tables[0].rows[wild].time = tables[0].rows[wild].time * 10;
  const TableSet set(tables, shipped_profiles());
  std::vector<FittedPoint> points = set.predict(set.fit(usual_prior(set.constants())));
  CHECK(points[wild].error() < -0.8);
  points.erase(points.begin() + wild);
  CHECK(worst_error(points) < 0.1);
}

// So slow a host rules every row but the largest: one kernel a call of a process for each GPU, eight where one process
// starts them all, and two for messages between pairs.
TEST_CASE("no call is shorter than its group's host takes to start the kernels") {
  MeasuredTable shared = table_of("here");
  shared.single_process = true;
  MeasuredTable pairs = table_of("here", CollectiveOp::send_recv);
  CommunicationFit fit = known_fit();
  fit.host_launch_us["here"] = 500;
  const auto first = [&](const MeasuredTable& table) { return predicted({table}, fit).front().predicted_s; };
  CHECK(first(table_of("here")) == doctest::Approx(500e-6));
  CHECK(first(shared) == doctest::Approx(8 * 500e-6));
  CHECK(first(pairs) == doctest::Approx(2 * 500e-6));
}

TEST_CASE("a group that no fit has seen starts kernels as fast as the calibration says") {
  CommunicationFit fit = known_fit();
  fit.host_launch_us["here"] = 500;
  fit.calibration.host_launch = Duration::microseconds(300);
  const std::vector<FittedPoint> points = predicted({table_of("here"), table_of("there")}, fit);
  CHECK(points.front().predicted_s == doctest::Approx(500e-6));
  CHECK(points[sizes.size()].predicted_s == doctest::Approx(300e-6));
}

// The curvature of half the sum of squares at the fit, measured along one constant by differences.
TEST_CASE(
    "what the points say of a constant is the curvature of their misfit; of what they do not show, nothing") {
  const std::vector<MeasuredTable> tables{measured_table()};
  const TableSet set(tables, shipped_profiles());
  const CommunicationFit fit = set.fit(usual_prior(set.constants()));
  const Eigen::MatrixXd information = set.information(fit);
  CHECK((information - information.transpose()).norm() < 1e-6 * information.norm());
  const auto& constants = set.constants();
  for (std::size_t i = 0; i < constants.size(); ++i) {
    CAPTURE(constants[i]->key);
    const double said = information(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(i));
    if (constants[i]->part == MachinePart::network || constants[i]->key.starts_with("peer"))
      CHECK(said == 0);  // one node, and no messages between pairs
    else if (constants[i]->key == "launch" || constants[i]->key == "efficiency")
      CHECK(said > 10);
  }
}

// A prior as narrow as 1 % holds a launch where it has it, whatever the points say.
TEST_CASE("a narrow prior outweighs the points, a wide one does not") {
  const std::vector<MeasuredTable> tables{measured_table()};
  const TableSet set(tables, shipped_profiles());
  ConstantsPrior narrow = usual_prior(set.constants());
  narrow.root *= 1000;
  CHECK(set.fit(narrow).calibration.collective_launch.in_seconds() == doctest::Approx(7e-6).epsilon(0.05));
  CHECK(set.fit(usual_prior(set.constants())).calibration.collective_launch.in_seconds() > 7.5e-6);
}

}  // namespace lockstep::communication_fit_test
