#include "sim/load/hardware/find_calibration.h"

#include <doctest/doctest.h>

#include <map>

#include "sim/network/usual_efficiency.h"
#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep::find_calibration_test {

using testing::Folder;
using testing::lab_text;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// One GPU behind PCIe of 1 GB/s, with a NIC.
std::string machine_text(const std::string& name, const std::string& gpu, const std::string& library = "nccl",
                         const std::string& nic = "1 GB/s") {
  return R"({"name": ")" + name + R"(", "gpu": ")" + gpu + R"(", "gpus": 1, "gpu_links": {"kind": "pcie"},
    "nics": {"count": 1, "link": {"bandwidth": ")" +
         nic + R"(", "latency": "1 us"}},
    "host": {"pcie": {"bandwidth": "1 GB/s", "latency": "1 us"}}, "library": ")" +
         library + "\"}";
}

// With a curve of its own, so that the folder needs no architecture's constants.
std::string gpu_text(const std::string& name, const std::string& capability) {
  return R"({"name": ")" + name + R"(", "peak": {"fp32": "1 TFLOP/s"}, "memory": "1 GiB",
    "memory_bandwidth": "1 GB/s", "sms": 1,
    "matmul_efficiency": {"fp32": [{"flops": "1 GFLOP", "efficiency": 0.5}]}, "compute_capability": ")" +
         capability + "\"}";
}

std::string calibration_text(const std::string& name, const std::string& network) {
  return R"({"name": ")" + name + R"(", "protocols": [{"name": "simple"}],
    "link_efficiency": {"network": )" +
         network + R"(}, "residuals": {"communication": {"low": -0.2, "high": 0.4}},
    "library_version": "2.28.9",
    "fitted": {"smallest": "8 B", "largest": "1 GiB", "most_ranks": 4, "most_nodes": 4}})";
}

// A data folder with a machine of each GPU.
class Relatives {
 public:
  void add(const std::string& machine, const std::string& capability, const std::string& network = "0.8") {
    const std::string gpu = "gpu_of_" + machine;
    folder_.write("hw_profiles/gpus/" + gpu + ".json", gpu_text(gpu, capability));
    folder_.write("hw_profiles/machines/" + machine + ".json", machine_text(machine, gpu));
    folder_.write("hw_profiles/calibration/" + machine + ".json", calibration_text(machine, network));
  }

  LoadedScenario load(const std::string& machine) const {
    const ProfileStore store(std::vector<std::string>{folder_.path()});
    Overrides overrides{{"cluster.machine", machine}};
    return load_value(nlohmann::ordered_json::parse(lab_text), {.store = store, .overrides = overrides});
  }

  LoadedScenario load_new(const std::string& capability, const std::string& library = "nccl",
                    const std::string& nic = "1 GB/s") {
    folder_.write("hw_profiles/gpus/asked.json", gpu_text("asked", capability));
    return load(machine_text("new", "asked", library, nic));
  }

 private:
  Folder folder_;
};

TEST_CASE("the nearest architecture lends, whatever the names") {
  Relatives relatives;
  relatives.add("a", "7.0");
  relatives.add("b", "8.0");
  relatives.add("c", "9.0");
  CHECK(relatives.load_new("7.0").cluster.calibration.name == "a");
  CHECK(relatives.load_new("8.6").cluster.calibration.name == "b");
  CHECK(relatives.load_new("10.0").cluster.calibration.name == "c");
}

TEST_CASE("of two that are as near in all, the one with the newer architecture lends") {
  for (const auto& [older, newer] : {std::pair{"a", "b"}, std::pair{"b", "a"}}) {
    Relatives relatives;
    relatives.add(older, "7.0");
    relatives.add(newer, "9.0");
    CHECK(relatives.load_new("8.0").cluster.calibration.name == newer);
  }
}

TEST_CASE("what is borrowed is said, with how far it is, and its band is wider by half") {
  Relatives relatives;
  relatives.add("a", "7.0");
  const LoadedScenario scenario = relatives.load_new("8.0");
  CHECK(scenario.warnings ==
        std::vector<std::string>{"machine new is uncalibrated: using a (asked instead of gpu_of_a, compute "
                                 "capability 8.0 instead of 7.0)"});
  const ResidualBand band = *scenario.cluster.calibration.communication_residual(Bytes{1});
  CHECK(band.low_ppm == -284'458);  // 0.8^1.5 - 1
  CHECK(band.high_ppm == 656'502);  // 1.4^1.5 - 1
}

TEST_CASE("a machine like one that was measured borrows its band as it is, and is told so") {
  Relatives relatives;
  relatives.add("a", "7.0");
  const LoadedScenario scenario = relatives.load(machine_text("new", "gpu_of_a"));
  CHECK(scenario.warnings == std::vector<std::string>{"machine new is uncalibrated: using a"});
  CHECK(scenario.cluster.calibration.communication_residual(Bytes{1})->low_ppm == -200'000);
}

TEST_CASE("a Gloo machine borrows nothing from NCCL, and without a relative all is neutral") {
  Relatives relatives;
  relatives.add("a", "7.0");
  const LoadedScenario scenario = relatives.load_new("7.0", "gloo");
  CHECK(scenario.cluster.calibration.name == "neutral");
  REQUIRE(scenario.cluster.calibration.protocols.size() == 1);
  CHECK(scenario.cluster.calibration.protocols[0].name == "simple");
  REQUIRE(scenario.warnings.size() == 1);
  CHECK(contains(scenario.warnings[0], "no relative"));
}

TEST_CASE("RCCL borrows from NCCL, its origin, and says so") {
  Relatives relatives;
  relatives.add("a", "7.0");
  const LoadedScenario scenario = relatives.load_new("7.0", "rccl");
  CHECK(scenario.cluster.calibration.name == "a");
  CHECK(contains(scenario.warnings.at(0), "rccl instead of nccl"));
}

TEST_CASE("a relative whose file is broken lends nothing") {
  Relatives relatives;
  relatives.add("a", "7.0", "1.5");
  relatives.add("b", "9.0");
  CHECK(relatives.load_new("7.0").cluster.calibration.name == "b");
}

std::int64_t network_share(const LoadedScenario& scenario) {
  return scenario.cluster.calibration.efficiency_ppm.at(LinkClass::network);
}

// Where 0.8 of a NIC was filled the NIC was the limit; 0.3 of 1 GB/s are the host's 0.3 GB/s.
TEST_CASE("a share of the wire is borrowed as a share, a host's limit as the rate it is") {
  Relatives wire_limited;
  wire_limited.add("a", "7.0", "0.8");
  Relatives host_limited;
  host_limited.add("a", "7.0", "0.3");
  CHECK(network_share(wire_limited.load_new("7.0", "nccl", "4 GB/s")) == 800'000);
  CHECK(network_share(host_limited.load_new("7.0", "nccl", "4 GB/s")) == 300'000 / 4);
  CHECK(network_share(host_limited.load_new("7.0", "nccl", "0.5 GB/s")) == 300'000 * 2);
  CHECK(network_share(host_limited.load_new("7.0", "nccl", "0.1 GB/s")) ==
        usual_efficiency_ppm(LinkClass::network));
  CHECK(network_share(host_limited.load_new("7.0", "nccl", "1 GB/s")) == 300'000);
  CHECK(network_share(host_limited.load_new("7.0", "nccl", "1 kB/s")) ==
        usual_efficiency_ppm(LinkClass::network));
  CHECK(network_share(host_limited.load_new("7.0", "nccl", "1000 TB/s")) == 1);
}

TEST_CASE("a machine that a scenario altered keeps its calibration and says what is another") {
  Relatives relatives;
  relatives.add("a", "7.0", "0.3");
  relatives.add("b", "7.0");
  const LoadedScenario as_measured = relatives.load("\"a\"");
  CHECK(as_measured.warnings.empty());
  CHECK(network_share(as_measured) == 300'000);
  const LoadedScenario altered = relatives.load(machine_text("a", "gpu_of_a", "nccl", "4 GB/s"));
  CHECK(altered.cluster.calibration.name == "a");
  CHECK(network_share(altered) == 300'000 / 4);
  REQUIRE(altered.warnings.size() == 1);
  CHECK(contains(altered.warnings[0], "NICs of 32 instead of 8 Gbit/s"));
  CHECK(contains(altered.warnings[0], "the host's 300 MB/s over network links is kept as a rate"));
}

TEST_CASE("a name does not make a PCIe machine one with NVLinks") {
  const LoadedScenario scenario = load({.text = testing::resnet_text,
                                  .overrides = {{"cluster.machine",
                                                 R"({"name": "dgx_h100", "gpu": "a100_pcie_40gb", "gpus": 8,
                               "gpu_links": {"kind": "pcie"}, "nics": {"count": 1, "link": "hdr200"}})"}}});
  CHECK(scenario.cluster.calibration.name == "a100_pcie");
  CHECK(contains(scenario.warnings.at(0), "machine dgx_h100 is uncalibrated: using a100_pcie"));
}

// Over PCIe without peer to peer all goes through host memory, whatever share of the wire that is.
TEST_CASE("a shipped box without peer to peer lends what its host moves, not a share of its PCIe") {
  const LoadedScenario there =
      load({.text = testing::resnet_text,
            .overrides = {{"cluster.machine", "rtx4090_2gpu_pcie"}, {"cluster.gpus_per_node", "2"}}});
  const LoadedScenario here =
      load({.text = testing::resnet_text,
            .overrides = {{"cluster.machine",
                           R"({"name": "mine", "gpu": "rtx4090", "gpus": 2, "gpu_links": {"kind": "pcie"},
                          "host": {"peer_to_peer": false, "pcie": "pcie5_x16"},
                          "nics": {"count": 1, "link": "roce_100g"}})"},
                          {"cluster.gpus_per_node", "2"}}});
  CHECK(here.cluster.calibration.name == "rtx4090_2gpu_pcie");
  const auto moved = [](const LoadedScenario& scenario) {
    return static_cast<double>(scenario.cluster.machine.host.pcie->bandwidth.count()) *
           static_cast<double>(scenario.cluster.calibration.efficiency_ppm.at(LinkClass::pcie));
  };
  CHECK(moved(here) == doctest::Approx(moved(there)).epsilon(1e-5));
}

// A 3090 box with an Ethernet NIC of 10 Gbit/s: what the host moved behind 100 Gbit/s is more than that.
TEST_CASE("a slow NIC is not slower still because a fast one waited for its host") {
  const LoadedScenario scenario =
      load({.text = testing::resnet_text,
            .overrides = {{"cluster.machine",
                           R"({"name": "mine", "gpu": "rtx3090", "gpus": 8, "gpu_links": {"kind": "pcie"},
                          "nics": {"count": 1, "link": "ethernet_10g"}})"}}});
  CHECK(scenario.cluster.calibration.name == "rtx3090_8gpu_pcie");
  CHECK(network_share(scenario) == usual_efficiency_ppm(LinkClass::network));
}

// Every shipped machine that must borrow, and from whom: a new one is added here after a look at it.
TEST_CASE("every shipped machine without measurements borrows from the one that physics names") {
  const std::map<std::string, std::string> lenders{
      {"aws_p2_16xlarge", "a100_pcie"},    // PCIe, peer to peer, the oldest architecture there is
      {"aws_p3_16xlarge", "dgx1_v100"},    // the same eight GPUs on the same mesh
      {"aws_p3dn_24xlarge", "dgx1_v100"},  //
      {"dgx1_p100", "abci_v"},             // NVLink mesh and EDR, whose network was measured
      {"dgx2_v100", "abci_v"},             // the same GPUs, NVLinks and NICs
      {"dgx_h200", "dgx_h100"},            // the same but for memory
      {"gb200_nvl72", "dgx_h100"},         // a switch of the generation before, the same NICs
      {"gcp_a3_high", "dgx_h100"},         // the same node, another network
      {"gcp_a3_mega", "dgx_h100"},         //
      {"gcp_a4", "dgx_h100"},              // NICs of the same rate
      {"hgx_b200", "dgx_h100"},            // the same NICs
      {"jean_zay_a100", "dgx_a100_80gb"},  // the same node
      {"k80_8gpu_pcie", "a100_pcie"},      //
      {"mi325x_8gpu", "mi300x_8gpu"},      // the same maker, links and library
      {"p100_4gpu_25gbe", "a100_pcie"},    //
      {"p100_4gpu_40gbe", "a100_pcie"},    //
      {"v100_4gpu_nvlink", "abci_v"},      // the same in all
      {"v100_8gpu_1xedr", "abci_v"}};      // the same GPUs, NVLinks and NIC
  const ProfileStore& store = shipped_profiles();
  std::map<std::string, std::string> found;
  for (const std::string& machine : store.names(ProfileKind::machine)) {
    const LoadedScenario scenario = load({.text = testing::resnet_text,
                                    .overrides = {{"cluster.machine", machine},
                                                  {"cluster.gpus_per_node", "1"},
                                                  {"model.precision", "fp32"},
                                                  {"communication", "{}"}}});
    const auto& warnings = scenario.warnings;
    if (std::any_of(warnings.begin(), warnings.end(),
                    [](const std::string& warning) { return contains(warning, "is uncalibrated"); }))
      found[machine] = scenario.cluster.calibration.name;
  }
  CHECK(nlohmann::json(found).dump(1) == nlohmann::json(lenders).dump(1));
}

}  // namespace lockstep::find_calibration_test
