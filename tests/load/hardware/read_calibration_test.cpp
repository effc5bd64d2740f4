#include "sim/load/hardware/read_calibration.h"

#include <doctest/doctest.h>

#include "tests/scenario/lab.h"

namespace lockstep::read_calibration_test {

using testing::load_lab;
using testing::problems_of_lab;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const char* const full = R"({"name": "mine", "source": "ours", "collective_launch": "8 us",
  "link_efficiency": {"nvlink": 0.87, "network": 0.95},
  "protocols": [{"name": "ll", "payload": 0.5, "launch": "1 us", "step": {"nvlink": "2 us", "network": "6 us"}}],
  "compute_slowdown": 1.15, "sm_interference": 13.3, "rank_variation": 0.01,
  "core_time_per_byte": "5200 ps", "core_share": 0.58, "core_wait": "2 ms", "unhidden_per_byte": "160 ps",
  "gradient_copy": {"per_tensor": "5 us", "bandwidth": "30 GB/s"}, "host_per_bucket": "30 us",
  "residuals": {"communication": {"low": -0.1, "high": 0.1}, "compute": {"low": -0.05, "high": 0.02}}})";

TEST_CASE("every field of a calibration is read, ratios as parts per million") {
  const Calibration calibration = load_lab({{"cluster.machine.calibration", full}}).cluster.calibration;
  CHECK(calibration.collective_launch == Duration::microseconds(8));
  CHECK(calibration.efficiency.at(LinkClass::nvlink) == Ratio::percent(87));
  CHECK_FALSE(calibration.efficiency.contains(LinkClass::pcie));
  REQUIRE(calibration.protocols.size() == 1);
  CHECK(calibration.protocols[0].payload == Ratio::percent(50));
  CHECK(calibration.protocols[0].launch == Duration::microseconds(1));
  CHECK(calibration.protocols[0].step.at(LinkClass::network) == Duration::microseconds(6));
  CHECK(calibration.compute_slowdown == Ratio::percent(115));
  CHECK(calibration.sm_interference == Ratio::percent(1330));
  CHECK(calibration.rank_variation == Ratio::percent(1));
  CHECK(calibration.core_time_per_byte_ps == 5'200);
  CHECK(calibration.core_share == Ratio::percent(58));
  CHECK(calibration.core_wait == Duration::milliseconds(2));
  CHECK(calibration.unhidden_per_byte_ps == 160);
  CHECK(calibration.copy_per_tensor == Duration::microseconds(5));
  CHECK(calibration.copy_bandwidth == Bandwidth{30'000'000'000});
  CHECK(calibration.host_per_bucket == Duration::microseconds(30));
  CHECK(calibration.communication_residual(Bytes{8})->low == Ratio::percent(-10));
  CHECK(calibration.compute_residual->high == Ratio::percent(2));
}

TEST_CASE("residuals that all lie on one side are widened to hold the prediction") {
  Calibration calibration;
  calibration.communication_residuals = {{.low = Ratio::percent(20), .high = Ratio::percent(50)},
                                         {Ratio::percent(-9), Ratio::percent(-3), Bytes{mebi}}};
  CHECK(calibration.communication_residual(Bytes{8})->low == Ratio{});
  CHECK(calibration.communication_residual(Bytes{8})->high == Ratio::percent(50));
  CHECK(calibration.communication_residual(Bytes{mebi})->low == Ratio::percent(-9));
  CHECK(calibration.communication_residual(Bytes{mebi})->high == Ratio{});
}

TEST_CASE("a calibration of its own raises no warning") {
  CHECK(load_lab({{"cluster.machine.calibration", full}}).warnings.empty());
}

TEST_CASE("a mistake in a calibration is an error where it stands") {
  const auto with = [](const std::string& path, const std::string& value) {
    return problems_of_lab(
        {{"cluster.machine.calibration", full}, {"cluster.machine.calibration." + path, value}});
  };
  CHECK(contains(with("protocols", "[]"), "/calibration/protocols: "));
  CHECK(contains(with("link_efficiency.nvlnk", "1"), "\"nvlink\""));
  CHECK(contains(with("protocols.0.payload", "0"), "/calibration/protocols/0/payload: "));
  CHECK(contains(with("compute_slowdown", "0.5"), "/calibration/compute_slowdown: "));
  CHECK(contains(with("residuals.compute.low", "0.5"), "low to be at most high"));
  CHECK(contains(with("core_time_per_byte", "1 ms"), "/calibration/core_time_per_byte: "));
  CHECK(contains(with("collective_launch", "8"), "/calibration/collective_launch: "));
}

TEST_CASE("nothing between nodes exceeds the wire: what would is an error where it stands") {
  const auto with = [](const std::string& path, const std::string& value) {
    return problems_of_lab(
        {{"cluster.machine.calibration", full}, {"cluster.machine.calibration." + path, value}});
  };
  CHECK(with("link_efficiency.network", "1").empty());
  CHECK(contains(with("link_efficiency.network", "1.174"), "/calibration/link_efficiency/network: "));
  CHECK(contains(with("protocols.0.fill", R"({"network": 1.1})"), "/calibration/protocols/0/fill/network: "));
  // 0.95 of the NIC for all, and 1.05 of that for one, is 0.9975 of the NIC; 1.06 is more than all of it.
  CHECK(with("algorithms", R"([{"name": "direct", "efficiency": 1.05}])").empty());
  CHECK(contains(with("algorithms", R"([{"name": "direct", "efficiency": 1.06}])"),
                 "/calibration/algorithms/0/efficiency: "));
  // Inside a node a path may be wider than its profile says.
  CHECK(with("link_efficiency.nvlink", "1.1").empty());
}

TEST_CASE("a protocol that the calibration does not know is an error with those it does") {
  const std::string found =
      problems_of_lab({{"cluster.machine.calibration", full}, {"communication.protocol", "ll128"}});
  CHECK(contains(found, "/communication/protocol: found \"ll128\""));
  CHECK(contains(found, "auto, ll"));
}

}  // namespace lockstep::read_calibration_test
