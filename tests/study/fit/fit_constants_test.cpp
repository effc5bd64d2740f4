#include "sim/study/fit/fit_constants.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/clusters.h"

namespace lockstep::fit_constants_test {

MeasuredTable table_of(CollectiveOp op) {
  MeasuredTable table;
  table.op = op;
  table.nodes = 2;
  return table;
}

// Whatever a solver tries: the NIC's rate, and with an algorithm's own share of it no more than that.
TEST_CASE("no value of a constant lets anything between nodes exceed the wire") {
  const std::vector<MeasuredTable> tables{table_of(CollectiveOp::all_reduce),
                                          table_of(CollectiveOp::all_to_all)};
  const MachineSpec machine = switch_machine(8, wire(LinkClass::nvlink, gigabytes_per_second(25)));
  const std::vector<FitConstant> constants = fit_constants(tables, machine);
  for (const double network : {0.3, 0.9, 1.174, 5.0})
    for (const double algorithm : {0.5, 1.0, 1.7, 5.0}) {
      Calibration calibration = blank_communication({});
      for (const FitConstant& constant : constants) {
        const bool is_network = constant.name == "efficiency between nodes";
        const bool is_algorithm = constant.name.ends_with(" efficiency");
        constant.put(calibration, is_network ? network : is_algorithm ? algorithm : constant.usual);
      }
      const double of_nic = static_cast<double>(calibration.efficiency_ppm.at(LinkClass::network)) / 1e6;
      CHECK(of_nic == doctest::Approx(std::min(network, 1.0)));
      CHECK(calibration.algorithms.size() == 4);  // tree, direct, nvls, nvls_tree
      for (const AlgorithmCost& cost : calibration.algorithms)
        CHECK(of_nic * static_cast<double>(cost.efficiency_ppm) / 1e6 <= 1);
    }
}

}  // namespace lockstep::fit_constants_test
