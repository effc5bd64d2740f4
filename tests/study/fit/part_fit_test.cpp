// Machines of the same parts, measured in a world whose constants are known: each is predicted from the others.

#include "sim/study/fit/part_fit.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/scenarios.h"

namespace lockstep::part_fit_test {

MeasuredTable blank_table(const std::string& machine, std::int64_t nodes, CollectiveOp op) {
  MeasuredTable table{.id = machine, .group = machine, .machine = machine, .profile = machine, .op = op};
  table.nodes = nodes;
  table.gpus_per_node = machine == "abci_v" ? 4 : 8;
  table.library_version = "2.18.3";
  for (std::int64_t size = 1 << 10; size <= 1 << 28; size *= 4)
    table.rows.push_back({Bytes{size}, Duration::microseconds(10)});
  return table;
}

// Every launch takes half as long again as usual (or what is given), every wire carries nine tenths of what it usually does.
CommunicationFit truth(const TableSet& set, double launch) {
  Eigen::VectorXd logarithms = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(set.constants().size()));
  for (std::size_t i = 0; i < set.constants().size(); ++i) {
    const std::string_view key = set.constants()[i]->key;
    if (key == "launch")
      logarithms[static_cast<Eigen::Index>(i)] = std::log(launch);
    else if (key == "efficiency")
      logarithms[static_cast<Eigen::Index>(i)] = std::log(0.9);
  }
  CommunicationFit fit = set.at(logarithms);
  fit.release[set.predict(fit).front().table->group] = 21'803;
  return fit;
}

std::vector<MeasuredTable> measured(const std::string& machine, double launch = 1.5) {
  std::vector<MeasuredTable> tables{blank_table(machine, 1, CollectiveOp::all_reduce),
                                    blank_table(machine, 2, CollectiveOp::all_reduce),
                                    blank_table(machine, 4, CollectiveOp::all_gather)};
  const TableSet set(tables, shipped_profiles());
  const std::vector<FittedPoint> points = set.predict(truth(set, launch));
  auto point = points.begin();
  for (MeasuredTable& table : tables)
    for (MeasuredRow& row : table.rows)
      row.time = Duration::picoseconds(std::llround((point++)->predicted_s * 1e12));
  return tables;
}

std::vector<MeasuredTable> three_machines() {
  std::vector<MeasuredTable> tables;
  for (const char* machine : {"dgx_a100_40gb", "dgx_a100_80gb", "jean_zay_a100"})
    for (MeasuredTable& table : measured(machine)) tables.push_back(std::move(table));
  return tables;
}

double worst_error(const PartMember& member, const CommunicationFit& fit) {
  double worst = 0;
  for (const FittedPoint& point : member.set.predict(fit)) worst = std::max(worst, std::abs(point.error()));
  return worst;
}

TEST_CASE("a machine is predicted from what others say of its parts, far better than from what is usual") {
  PartFit fit(three_machines(), shipped_profiles());
  fit.solve(3);
  REQUIRE(fit.members().size() == 3);
  for (const PartMember& member : fit.members()) {
    CAPTURE(member.profile);
    CommunicationFit composed = member.set.at(fit.prior_without(member.machine, member).mean);
    composed.release = member.fit.release;
    CommunicationFit usual = member.set.at(usual_prior(member.set.constants()).mean);
    usual.release = member.fit.release;
    CHECK(worst_error(member, composed) < 0.05);
    CHECK(worst_error(member, usual) > 0.08);
  }
}

TEST_CASE("machines that are alike end with a narrow spread, and a part counts machines and tables") {
  PartFit fit(three_machines(), shipped_profiles());
  fit.solve(3);
  const std::map<std::string, PartProfile> parts = fit.parts();
  REQUIRE(parts.contains("ampere"));
  CHECK(parts.at("ampere").machines == 3);
  CHECK(parts.at("ampere").tables == 9);
  const PartConstant efficiency = parts.at("nvlink3").constants.at("efficiency");
  CHECK(efficiency.value == doctest::Approx(0.77 * 0.9).epsilon(0.02));
  CHECK(efficiency.spread < 0.25);
}

double expected_launch(const PartFit& fit, const std::string& machine) {
  for (const PartMember& member : fit.members())
    for (std::size_t i = 0; i < member.set.constants().size(); ++i)
      if (member.machine == machine && member.set.constants()[i]->key == "launch")
        return fit.prior_without(machine, member).mean[static_cast<Eigen::Index>(i)];
  return 0;
}

double found_launch(const PartFit& fit, const std::string& part) {
  return std::log(fit.parts().at(part).constants.at("launch").value / 7);  // usual: 7 us
}

// Of Volta nobody else has a table. Ampere, whose launches take half as long again, stands in for it before Hopper, whose
// take two thirds: of the way from their middle, which both say as much of, to Ampere, Volta is expected to be half, and
// with what is uncertain of either at least a quarter.
TEST_CASE("a part that nobody else has is expected near what stands in for it") {
  std::vector<MeasuredTable> tables = measured("dgx_a100_80gb");
  for (const MeasuredTable& table : measured("dgx_h100", 1 / 1.5)) tables.push_back(table);
  for (const MeasuredTable& table : measured("abci_v", 1)) tables.push_back(table);
  PartFit fit(tables, shipped_profiles());
  fit.solve(2);
  const double ampere = found_launch(fit, "ampere");
  const double hopper = found_launch(fit, "hopper");
  REQUIRE(ampere > hopper);
  const double middle = (ampere + hopper) / 2;
  CHECK(expected_launch(fit, "abci_v") > middle + (ampere - middle) / 4);
}

// One machine alone has nobody to say anything of its parts.
TEST_CASE("a machine is no evidence for its own prior") {
  PartFit fit(measured("dgx_a100_80gb"), shipped_profiles());
  fit.solve(2);
  const PartMember& alone = fit.members().front();
  CHECK(fit.prior_without(alone.machine, alone).mean.norm() < 1e-9);
}

}  // namespace lockstep::part_fit_test
