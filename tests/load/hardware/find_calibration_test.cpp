#include "sim/load/hardware/find_calibration.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "sim/load/hardware/machine_parts.h"
#include "sim/network/usual_efficiency.h"
#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep::find_calibration_test {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool warns_of(const LoadedScenario& scenario, const std::string& part) {
  return std::any_of(scenario.warnings.begin(), scenario.warnings.end(),
                     [&](const std::string& warning) { return contains(warning, part); });
}

LoadedScenario load_machine(const std::string& machine,
                            std::vector<std::pair<std::string, std::string>> more = {}) {
  Overrides overrides{{"cluster.machine", machine}, {"model.precision", "fp32"}, {"communication", "{}"}};
  for (auto& [path, value] : more) overrides.push_back({path, value});
  return load({.text = testing::resnet_text, .overrides = overrides});
}

std::string box(const std::string& gpu, const std::string& links, const std::string& nic) {
  return R"({"name": "mine", "gpu": ")" + gpu + R"(", "gpus": 8, "gpu_links": )" + links +
         R"(, "nics": {"count": 4, "link": )" + nic + "}}";
}
const std::string nvlink4 = R"({"kind": "nvswitch", "link": "nvlink4", "links_per_gpu": 18})";

TEST_CASE("a machine of parts that were measured is composed of them, whatever its name, and says so") {
  const LoadedScenario mine = load_machine(box("h100_sxm_80gb", nvlink4, R"("ndr400")"));
  CHECK(mine.cluster.calibration.name == "hopper, nvlink4, infiniband_ndr");
  CHECK(warns_of(mine, "machine mine is uncalibrated: composed of parts: hopper ("));
  CHECK(warns_of(mine, "infiniband_ndr ("));
  CHECK_FALSE(warns_of(mine, "stands in"));
  CHECK(mine.cluster.calibration.communication_residuals.size() == 3);
  const LoadedScenario renamed =
      load_machine(R"({"based_on": "dgx_h100", "name": "another", "nics": {"count": 4}})");
  CHECK(renamed.cluster.calibration.protocols == mine.cluster.calibration.protocols);
}

TEST_CASE("a machine that is built of the same parts as a measured one has its calibration, and says so") {
  const LoadedScenario h100 = load_machine("dgx_h100");
  for (const char* machine : {"dgx_h200", R"({"based_on": "dgx_h100", "name": "another"})"}) {
    const LoadedScenario alike = load_machine(machine);
    CHECK(alike.cluster.calibration == h100.cluster.calibration);
    CHECK(std::any_of(alike.warnings.begin(), alike.warnings.end(), [](const std::string& warning) {
      return contains(warning, "built of the same parts as dgx_h100");
    }));
  }
}

TEST_CASE(
    "a part that nobody measured is stood in for by its nearest relative, which is said, in a wider band") {
  const LoadedScenario known = load_machine(box("h100_sxm_80gb", nvlink4, R"("ndr400")"));
  const LoadedScenario unknown = load_machine(box("h100_sxm_80gb", nvlink4, R"("omnipath100")"));
  CHECK(warns_of(unknown, "infiniband_edr stands in for omnipath"));
  const auto width = [](const LoadedScenario& scenario) {
    const ResidualBand band = scenario.cluster.calibration.communication_residuals.back();
    return band.high - band.low;
  };
  CHECK(width(unknown) > width(known));
}

// A link without a name is told by its latency.
TEST_CASE("a network without a name is one that bypasses the kernel if its latency is short, else sockets") {
  const auto parts = [](const std::string& latency) {
    const LoadedScenario scenario = load_machine(
        box("h100_sxm_80gb", nvlink4, R"({"bandwidth": "50 GB/s", "latency": ")" + latency + "\"}"));
    return parts_of(scenario.cluster.machine, 90)[2].front();
  };
  CHECK(parts("1 us") == "infiniband_ndr");
  CHECK(parts("30 us") == "sockets");
}

TEST_CASE("GPUs that let nobody into their memory have a network part of their own") {
  const LoadedScenario scenario = load_machine(
      R"({"name": "mine", "gpu": "rtx4090", "gpus": 2, "gpu_links": {"kind": "pcie"},
          "host": {"peer_to_peer": false, "pcie": "pcie4_x16"}, "nics": {"count": 1, "link": "roce_100g"}})",
      {{"cluster.gpus_per_node", "2"}});
  const PartNames names = parts_of(scenario.cluster.machine, 89);
  CHECK(names[0].front() == "ada");
  CHECK(names[1].front() == "pcie_host");
  CHECK(names[2].front() == "roce_staged");
  CHECK(names[2].at(1) == "roce");
}

TEST_CASE("hosts carry sockets and what is staged in their memory, NICs all else") {
  for (const char* name : {"sockets", "tcpx", "slingshot_tcp", "infiniband_staged", "roce_staged"})
    CHECK(is_carried_by_host(name));
  for (const char* name :
       {"infiniband_hdr", "roce", "efa", "fastrak", "slingshot", "slingshot_software_match"})
    CHECK_FALSE(is_carried_by_host(name));
}

TEST_CASE("every generation of InfiniBand is one network, and nothing else is") {
  for (const char* name : {"infiniband_edr", "infiniband_hdr", "infiniband_ndr", "infiniband_xdr"})
    CHECK(without_generation(name) == "infiniband");
  for (const char* name : {"infiniband_staged", "roce", "efa", "slingshot"})
    CHECK(without_generation(name) == name);
}

TEST_CASE("a step costs much the same over every generation of InfiniBand, as shipped") {
  const ProfileStore store;
  LoadContext context{.store = store, .folder = ""};
  const auto value = [&](const char* part, const char* key) {
    return open_named(part, {context, ""}, ProfileKind::part, read_part).constants.at(key).value;
  };
  for (const char* key : {"ll_step", "ll128_step", "simple_step"})
    for (const char* part : {"infiniband_edr", "infiniband_ndr"}) {
      CAPTURE(part);
      CHECK(value(part, key) == doctest::Approx(value("infiniband_hdr", key)).epsilon(0.15));
    }
}

TEST_CASE("nearest relatives are neighbours in time, and of two as near the newer") {
  MachineSpec machine;
  machine.gpu_links.kind = GpuLinkKind::nvswitch;
  const PartNames turing = parts_of(machine, 75);
  CHECK(turing[0].front() == "turing");
  CHECK(turing[0].at(1) == "ampere");
  CHECK(turing[0].at(2) == "volta");
  CHECK(parts_of(machine, 90)[1].front() == "nvlink4");
  CHECK(parts_of(machine, 100)[1].front() == "nvlink5");
  CHECK(parts_of(machine, 60)[1].front() == "nvlink1");
}

// What was measured stays; what a scenario put in has its part's constants.
TEST_CASE("a measured machine with another part keeps the constants of the rest") {
  const LoadedScenario measured = load_machine("dgx_h100");
  CHECK_FALSE(warns_of(measured, "calibrat"));
  const LoadedScenario altered =
      load_machine(R"({"based_on": "dgx_h100", "nics": {"count": 8, "link": "ethernet_25g"}})");
  const Calibration& before = measured.cluster.calibration;
  const Calibration& after = altered.cluster.calibration;
  CHECK(after.collective_launch == before.collective_launch);
  CHECK(after.efficiency.at(LinkClass::nvlink) == before.efficiency.at(LinkClass::nvlink));
  CHECK(after.protocols[2].step.at(LinkClass::network) != before.protocols[2].step.at(LinkClass::network));
  CHECK(warns_of(altered, "sockets instead of infiniband_ndr"));
}

// One GPU with a curve of its own, a NIC of 1 GB/s, and a calibration that fills `network` of it.
class HostLimited {
 public:
  explicit HostLimited(const std::string& network) {
    folder_.write("hw_profiles/gpus/small.json", R"({"name": "small", "peak": {"fp32": "1 TFLOP/s"},
      "memory": "1 GiB", "memory_bandwidth": "1 GB/s", "sms": 1, "compute_capability": "7.0",
      "matmul_efficiency": {"fp32": [{"flops": "1 GFLOP", "efficiency": 0.5}]}})");
    folder_.write("hw_profiles/machines/host.json", machine("1 GB/s"));
    folder_.write("hw_profiles/calibration/host.json",
                  R"({"name": "host", "protocols": [{"name": "simple"}], "link_efficiency": {"network": )" +
                      network + "}}");
  }

  Ratio share_with(const std::string& nic) const {
    const ProfileStore store(std::vector<std::string>{folder_.path()});
    const Overrides overrides{{"cluster.machine", machine(nic)}};
    const LoadedScenario scenario = load_value(nlohmann::ordered_json::parse(testing::lab_text),
                                               {.store = store, .overrides = overrides});
    return scenario.cluster.calibration.efficiency.at(LinkClass::network);
  }

 private:
  static std::string machine(const std::string& nic) {
    return R"({"name": "host", "gpu": "small", "gpus": 1, "gpu_links": {"kind": "pcie"}, "library": "nccl",
      "host": {"pcie": {"bandwidth": "1 GB/s", "latency": "1 us"}},
      "nics": {"count": 1, "link": {"bandwidth": ")" +
           nic + R"(", "latency": "1 us"}}})";
  }

  testing::Folder folder_;
};

// Where 0.8 of a NIC was filled the NIC was the limit; 0.3 of 1 GB/s are the host's 0.3 GB/s.
TEST_CASE("a share of a wire goes with another NIC as a share, a host's limit as the rate it is") {
  CHECK(HostLimited("0.8").share_with("4 GB/s") == Ratio::percent(80));
  const HostLimited limited("0.3");
  CHECK(limited.share_with("1 GB/s") == Ratio::percent(30));
  CHECK(limited.share_with("4 GB/s") == share(Ratio::percent(30), 4));
  CHECK(limited.share_with("0.5 GB/s") == Ratio::percent(30) * 2);
  CHECK(limited.share_with("0.1 GB/s") == usual_efficiency(LinkClass::network));
}

TEST_CASE("a Gloo machine has nothing of NCCL's parts, and its host's rate is kept") {
  const LoadedScenario gloo = load_machine(
      R"({"name": "lab", "gpu": "cpu", "gpus": 1, "gpu_links": {"kind": "none"},
          "nics": {"count": 1, "link": {"bandwidth": "1.24 GB/s", "latency": "100 us"}}, "library": "gloo"})",
      {{"cluster.gpus_per_node", "1"}});
  CHECK(gloo.cluster.calibration.name == "cpu_gloo");
  CHECK(contains(gloo.warnings.at(0), "machine lab is uncalibrated: using cpu_gloo"));
}

TEST_CASE("a part's file says its constants with unit and spread, and reads back as written") {
  PartProfile part;
  part.name = "mine";
  part.part = MachinePart::network;
  part.machines = 2;
  part.tables = 3;
  part.constants["ll_step"] = {.value = 1.25, .spread = 0.3};
  part.residuals = {{.low = Ratio::percent(-10), .high = Ratio::percent(20), .from = Bytes{0}}};
  const nlohmann::ordered_json json = write_part(part);
  CHECK(json["constants"]["ll_step"]["unit"] == "us");
  LoadContext context{.store = shipped_profiles(), .folder = ""};
  JsonDocument document = JsonDocument::from_value(json, "part");
  const PartProfile back = read_part(document.root(), {context, ""});
  document.throw_if_problems();
  CHECK(back.part == MachinePart::network);
  CHECK(back.constants == part.constants);
  CHECK(back.residuals == part.residuals);
  CHECK(back.tables == 3);
}

TEST_CASE("a part's file with a constant of another part, or of none, is refused by name") {
  LoadContext context{.store = shipped_profiles(), .folder = ""};
  for (const char* key : {"launch", "nonsense"}) {
    JsonDocument document = JsonDocument::from_text(
        R"({"name": "x", "part": "network", "machines": 1, "tables": 1, "constants": {")" + std::string(key) +
            R"(": {"value": 1, "spread": 0.1}}})",
        "x.json");
    read_part(document.root(), {context, ""});
    REQUIRE_FALSE(document.problems().empty());
    CHECK(contains(document.problems()[0], key));
  }
}

}  // namespace lockstep::find_calibration_test
