#include "sim/load/hardware/read_hardware.h"

#include <doctest/doctest.h>

#include "tests/scenario/lab.h"

namespace lockstep::read_hardware_test {

using testing::load_lab;
using testing::load_resnet;
using testing::problems_of_lab;
using testing::problems_of_resnet;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const char* const inline_gpu = R"({"name": "mine", "peak": {"fp32": "10 TFLOP/s", "fp16": "100 TFLOP/s"},
  "memory": "16 GiB", "memory_bandwidth": "900 GB/s", "sms": 80, "tdp": "300 W"})";

std::string box(const std::string& links) {
  return R"({"name": "box", "source": "ours", "gpu": "a100_sxm_40gb", "gpus": 2, "gpu_links": )" + links +
         "}";
}

TEST_CASE("every shipped machine loads, alone and in pairs") {
  const ProfileStore store;
  const auto scenario = nlohmann::ordered_json::parse(testing::lab_text);
  for (const std::string& machine : store.names(ProfileKind::machine)) {
    CAPTURE(machine);
    const Scenario pair = load_value(
        scenario, {.store = store, .overrides = {{"cluster.machine", machine}, {"cluster.nodes", "2"}}});
    CHECK(pair.cluster.machine.name == machine);
    CHECK(pair.cluster.ranks() == 2 * pair.cluster.machine.gpus);
  }
}

TEST_CASE("an inline GPU is enough with its peaks, memory and SMs") {
  const GpuSpec gpu = load_lab({{"cluster.machine.gpu", inline_gpu}}).cluster.gpu;
  CHECK(gpu.peak.at(Precision::fp16) == FlopRate{100'000'000'000'000});
  CHECK(gpu.vector_peak == gpu.peak.at(Precision::fp32));
  CHECK(gpu.tdp_milliwatts == 300'000);
  CHECK(gpu.matmul_efficiency.at(Precision::fp16).size() == 1);
}

TEST_CASE("a borrowed efficiency curve keeps its shape and ends at the best ratio known") {
  const GpuSpec lender = load_resnet().cluster.gpu;
  const GpuSpec gpu = load_resnet({{"cluster.machine", "dgx_h100"}}).cluster.gpu;
  const auto& shape = lender.matmul_efficiency.at(Precision::fp16);
  const auto& borrowed = gpu.matmul_efficiency.at(Precision::bf16);
  REQUIRE(borrowed.size() == shape.size());
  CHECK(borrowed.back().parts_per_million == 803'000);  // best_matmul_efficiency of h100_sxm_80gb
  CHECK(borrowed.front().parts_per_million ==
        shape.front().parts_per_million * 803'000 / shape.back().parts_per_million);
  CHECK(gpu.matmul_efficiency.at(Precision::fp8).back().parts_per_million !=
        borrowed.back().parts_per_million);  // its own curve
}

TEST_CASE("a mistake inside an inline GPU is an error where it stands") {
  const std::string machine = "cluster.machine.gpu";
  CHECK(contains(problems_of_lab({{machine, inline_gpu}, {machine + ".peak.fp61", "1 TFLOP/s"}}),
                 "/cluster/machine/gpu/peak/fp61: "));
  CHECK(contains(problems_of_lab({{machine, inline_gpu}, {machine + ".peak", "{}"}}),
                 "/cluster/machine/gpu/peak: "));
  CHECK(contains(problems_of_lab({{machine, inline_gpu}, {machine + ".memory", "16"}}),
                 "/cluster/machine/gpu/memory: "));
  CHECK(contains(problems_of_lab({{machine, inline_gpu}, {machine + ".memory_efficiency", "1.5"}}),
                 "/cluster/machine/gpu/memory_efficiency: "));
  CHECK(contains(problems_of_lab({{machine, inline_gpu}, {machine + ".tdp", "300 J"}}),
                 "/cluster/machine/gpu/tdp: "));
  CHECK(
      contains(problems_of_lab({{machine, inline_gpu}, {machine + ".matmul_efficiency", R"({"fp16": []})"}}),
               "/cluster/machine/gpu/matmul_efficiency/fp16: "));
}

TEST_CASE("a device slower or faster than any is an error") {
  CHECK(contains(
      problems_of_lab({{"cluster.machine.gpu", inline_gpu}, {"cluster.machine.gpu.peak.fp16", "1 FLOP/s"}}),
      "/cluster/machine/gpu/peak/fp16: "));
  CHECK(contains(problems_of_lab({{"cluster.machine.gpu", inline_gpu},
                                  {"cluster.machine.gpu.memory_bandwidth", "1 B/s"}}),
                 "/cluster/machine/gpu/memory_bandwidth: "));
}

TEST_CASE("NICs given by a count are spread evenly over the GPUs") {
  const LinkSpec link;
  const auto four = spread_nics(link, 4, 8);
  CHECK(four[0].gpus == std::vector<std::int64_t>{0, 1});
  CHECK(four[3].gpus == std::vector<std::int64_t>{6, 7});
  const auto sixteen = spread_nics(link, 16, 8);
  CHECK(sixteen[0].gpus == std::vector<std::int64_t>{0});
  CHECK(sixteen[15].gpus == std::vector<std::int64_t>{7});
  const auto three = spread_nics(link, 3, 8);  // GPU i is close to NIC 3 i / 8, rounded down
  CHECK(three[0].gpus == std::vector<std::int64_t>{0, 1, 2});
  CHECK(three[1].gpus == std::vector<std::int64_t>{3, 4, 5});
  CHECK(three[2].gpus == std::vector<std::int64_t>{6, 7});
}

TEST_CASE("a host that is left out has one socket and the PCIe of its GPU's time") {
  const auto pcie_of = [](const std::string& gpu) {
    const std::string links = R"({"kind": "pcie"})";
    const Scenario scenario = load_resnet({{"cluster.machine", box(links)},
                                           {"cluster.machine.gpu", gpu},
                                           {"cluster.nodes", "1"},
                                           {"cluster.gpus_per_node", "2"}});
    CHECK(scenario.cluster.machine.host.sockets == 1);
    return scenario.cluster.machine.host.pcie->name;
  };
  CHECK(pcie_of("v100_sxm2_16gb") == "pcie3_x16");
  CHECK(pcie_of("a100_sxm_40gb") == "pcie4_x16");
  CHECK(pcie_of("h100_sxm_80gb") == "pcie5_x16");
}

TEST_CASE("indices of GPUs that a machine does not have are errors") {
  const std::string links = R"({"kind": "nvswitch", "link": "nvlink3", "links_per_gpu": 12})";
  const Overrides base{
      {"cluster.machine", box(links)}, {"cluster.nodes", "1"}, {"cluster.gpus_per_node", "2"}};
  const auto with = [&](const std::string& path, const std::string& value) {
    Overrides overrides = base;
    overrides.emplace_back(path, value);
    return problems_of_resnet(overrides);
  };
  CHECK(with("name", "fine").empty());
  CHECK(contains(with("cluster.machine.nics", R"([{"link": "hdr200", "gpus": [2]}])"), "/nics/0/gpus/0: "));
  CHECK(contains(with("cluster.machine.host", R"({"pcie_switches": [[0], [0, 1]]})"), "/pcie_switches/1: "));
  CHECK(contains(with("cluster.machine.host", R"({"pcie_switches": [[]]})"), "/pcie_switches/0: "));
  CHECK(contains(with("cluster.machine.gpu_links", R"({"kind": "mesh", "link": "nvlink3", "matrix": [[0]]})"),
                 "/gpu_links/matrix: "));
  CHECK(contains(
      with("cluster.machine.gpu_links", R"({"kind": "mesh", "link": "nvlink3", "matrix": [[0, 1], [2, 0]]})"),
      "symmetric"));
}

TEST_CASE("a fabric of the scenario beats the machine's") {
  CHECK(load_resnet().cluster.fabric.name == "rail_optimised");
  CHECK(load_resnet({{"cluster.fabric", "fat_tree_4to1"}}).cluster.fabric.oversubscription == 4);
  CHECK(contains(problems_of_resnet({{"cluster.fabric", R"({"kind": "fat_tree", "oversubscription": 0.5})"}}),
                 "/cluster/fabric/oversubscription: "));
}

TEST_CASE("GPUs of one node that nothing joins are an error") {
  const std::string found = problems_of_lab({{"cluster.machine.gpus", "2"}});
  CHECK(contains(found, "/cluster/gpus_per_node: found 2"));
  CHECK(contains(found, "host.pcie"));
  CHECK(problems_of_lab({{"cluster.machine.gpus", "2"}, {"cluster.machine.host", R"({"pcie": "pcie4_x16"})"}})
            .empty());
}

}  // namespace lockstep::read_hardware_test
