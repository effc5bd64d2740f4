#include "sim/load/hardware/communication_constants.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/support/clusters.h"

namespace lockstep::communication_constants_test {

MachineSpec machine_with_switch() {
  return switch_machine(8, wire(LinkClass::nvlink, gigabytes_per_second(25)));
}

// Whatever a solver tries: the NIC's rate, and with an algorithm's own share of it no more than that.
TEST_CASE("no value of a constant lets anything between nodes exceed the wire") {
  const MachineSpec machine = machine_with_switch();
  for (const double network : {0.3, 0.9, 1.174, 5.0})
    for (const double algorithm : {0.5, 1.0, 1.7, 5.0}) {
      Calibration calibration = blank_communication({});
      for (const CommunicationConstant* constant : constants_of(machine)) {
        const bool is_network = constant->part == MachinePart::network && constant->key == "efficiency";
        const bool is_algorithm = constant->key.ends_with("_efficiency");
        constant->put(calibration, classes_in_node(machine),
                      is_network     ? network
                      : is_algorithm ? algorithm
                                     : constant->usual);
      }
      const double of_nic = calibration.efficiency.at(LinkClass::network).in_real();
      CHECK(of_nic == doctest::Approx(std::min(network, 1.0)));
      CHECK(calibration.algorithms.size() == 4);  // tree, direct, nvls, nvls_tree
      for (const AlgorithmCost& cost : calibration.algorithms) CHECK(of_nic * cost.efficiency.in_real() <= 1);
    }
}

TEST_CASE("each constant has a key of its own within its part, and changes the calibration it is put into") {
  const MachineSpec machine = machine_with_switch();
  std::set<std::string> keys;
  for (const CommunicationConstant& constant : communication_constants()) {
    CAPTURE(constant.key);
    CHECK(keys.insert(std::string(name_of(constant.part)) + "." + std::string(constant.key)).second);
    CHECK(constant.spread > 0);
    Calibration before = blank_communication({});
    before.efficiency[LinkClass::network] = Ratio::one();
    Calibration after = before;
    constant.put(after, classes_in_node(machine), constant.usual * 0.7);
    CHECK_FALSE(after == before);
  }
}

TEST_CASE("multicast is of switches, and without NVLink a node's GPUs send through PCIe and sockets") {
  MachineSpec machine = machine_with_switch();
  const std::size_t all = constants_of(machine).size();
  CHECK(all == communication_constants().size());
  machine.gpu_links.kind = GpuLinkKind::pcie;
  CHECK(constants_of(machine).size() == all - 4);
  CHECK(classes_in_node(machine) == std::vector<LinkClass>{LinkClass::pcie, LinkClass::socket});
}

}  // namespace lockstep::communication_constants_test
