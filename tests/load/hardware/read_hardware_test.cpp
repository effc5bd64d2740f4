#include "sim/load/hardware/read_hardware.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/compute/product_time.h"
#include "sim/load/hardware/kernel_constants_json.h"
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

TEST_CASE("protocols that a NIC's software leaves go with the NIC") {
  const auto left = [](const std::string& nic) {
    return load_resnet({{"cluster.machine", "aws_p4d_24xlarge"}, {"cluster.machine.nics", nic}})
        .cluster.machine.nics.front()
        .link.protocols;
  };
  CHECK(left(R"({"count": 4, "link": "efa100"})") == std::vector<std::string>{"simple"});
  CHECK(left(R"({"count": 4, "link": "hdr200"})").empty());
}

TEST_CASE("protocols are named once each, at least one, and of a NIC alone") {
  const auto problems = [](const std::string& protocols, const std::string& link_class) {
    return problems_of_resnet({{"cluster.machine.nics.link",
                                R"({"name": "mine", "bandwidth": "25 GB/s", "latency": "2 us", "class": ")" +
                                    link_class + R"(", "protocols": )" + protocols + "}"}});
  };
  CHECK(problems(R"(["ll", "simple"])", "network").empty());
  CHECK(contains(problems(R"(["simple", "simple"])", "network"), "found \"simple\" twice in one list"));
  CHECK(contains(problems("[]", "network"), "expected at least one of ll, ll128, simple"));
  CHECK(contains(problems(R"(["simpel", "LL"])", "network"), "simple"));
  CHECK_FALSE(contains(problems(R"(["simpel", "LL"])", "network"), "twice"));
  CHECK(contains(problems(R"(["ll"])", "pcie"), "found on a link inside a node"));
}

TEST_CASE("an inline GPU is enough with its peaks, memory and SMs") {
  const GpuSpec gpu = load_lab({{"cluster.machine.gpu", inline_gpu}}).cluster.gpu;
  CHECK(gpu.peak.at(Precision::fp16) == FlopRate{100'000'000'000'000});
  CHECK(gpu.vector_peak == gpu.peak.at(Precision::fp32));
  CHECK(gpu.tdp_milliwatts == 300'000);
  CHECK(gpu.matmul_efficiency.empty());
}

std::string architecture_named(const std::string& machine) {
  return load_resnet({{"cluster.machine", machine}}).cluster.gpu.kernels.value().name;
}

TEST_CASE("a GPU takes the constants of its architecture") {
  CHECK(architecture_named("dgx_h100") == "hopper");
  CHECK(architecture_named("dgx_a100_40gb") == "ampere");
  CHECK(architecture_named("dgx1_v100") == "volta");
  CHECK(architecture_named("mi300x_8gpu") == "cdna3");
}

bool says_never_compared(const std::vector<std::string>& warnings) {
  return std::ranges::any_of(warnings, [](const std::string& warning) {
    return contains(warning, "never compared with timed ones");
  });
}

// Residuals stand in the file of an architecture that was compared.
TEST_CASE("constants that were never compared with timed kernels say so") {
  for (const char* gpu : {"mi250x", "mi300x", "mi325x", "mi350x", "mi355x", "h100_sxm_80gb"}) {
    CAPTURE(gpu);
    CHECK_FALSE(says_never_compared(load_lab({{"cluster.machine.gpu", gpu}}).warnings));
  }
  const ProfileStore store;
  nlohmann::ordered_json bare = *store.open(ProfileKind::architecture, "cdna3")->value;
  bare.erase("residuals");
  const testing::Folder folder;
  const std::string file = folder.write("bare.json", bare.dump());
  CHECK(says_never_compared(load_lab({{"cluster.machine.gpu.compute", file}}).warnings));
}

TEST_CASE("every shipped GPU has constants, but for the processor that has a curve") {
  for (const std::string& name : ProfileStore().names(ProfileKind::gpu)) {
    CAPTURE(name);
    const GpuSpec gpu = load_lab({{"cluster.machine.gpu", name}}).cluster.gpu;
    CHECK(gpu.kernels.has_value() == (name != "cpu"));
    CHECK(gpu.matmul_efficiency.empty() == (name != "cpu"));
  }
}

TEST_CASE("a GPU that says no compute capability has that which its precisions tell") {
  const auto architecture_with = [](const std::string& peaks) {
    const GpuSpec gpu =
        load_lab({{"cluster.machine.gpu", inline_gpu}, {"cluster.machine.gpu.peak", peaks}}).cluster.gpu;
    return gpu.kernels.value().name;
  };
  CHECK(architecture_with(R"({"fp32": "10 TFLOP/s"})") == "pascal");
  CHECK(architecture_with(R"({"fp32": "10 TFLOP/s", "fp16": "100 TFLOP/s"})") == "volta");
  CHECK(architecture_with(R"({"fp32": "10 TFLOP/s", "tf32": "100 TFLOP/s"})") == "ampere");
  CHECK(architecture_with(R"({"fp32": "10 TFLOP/s", "bf16": "100 TFLOP/s"})") == "ampere");
  CHECK(architecture_with(R"({"fp32": "10 TFLOP/s", "fp8": "100 TFLOP/s"})") == "hopper");
}

bool warns_of_stand_in(const std::string& gpu) {
  const auto warnings = load_lab({{"cluster.machine.gpu", gpu}}).warnings;
  return std::any_of(warnings.begin(), warnings.end(),
                     [](const std::string& warning) { return contains(warning, "stand for"); });
}

TEST_CASE("a GPU whose architecture nobody timed says in its result whose kernels stand for its own") {
  CHECK(warns_of_stand_in("k80"));
  CHECK(warns_of_stand_in(inline_gpu));
  CHECK_FALSE(warns_of_stand_in("a100_sxm_40gb"));
  CHECK_FALSE(warns_of_stand_in("h100_sxm_80gb"));
}

TEST_CASE("a curve that a processor states stands before its architecture's constants") {
  const GpuSpec gpu = load_lab({{"cluster.machine.gpu", inline_gpu},
                                {"cluster.machine.gpu.matmul_efficiency",
                                 R"({"fp16": [{"flops": "1 GFLOP", "efficiency": 0.4}]})"}})
                          .cluster.gpu;
  CHECK_FALSE(gpu.kernels);
  CHECK(gpu.matmul_efficiency.at(Precision::fp16).front().efficiency == Ratio::percent(40));
}

TEST_CASE("constants that a GPU states by name or in full stand before its architecture's") {
  const std::string compute = "cluster.machine.gpu.compute";
  const GpuSpec named = load_lab({{"cluster.machine.gpu", inline_gpu}, {compute, "ada"}}).cluster.gpu;
  CHECK(named.kernels.value().name == "ada");
  KernelConstants own = *named.kernels;
  own.name = "mine";
  own.tensor.efficiency = Ratio::parts_per_million(123'400);
  const GpuSpec stated =
      load_lab({{"cluster.machine.gpu", inline_gpu}, {compute, write_kernel_constants(own).dump()}})
          .cluster.gpu;
  CHECK(stated.kernels == own);
}

TEST_CASE(
    "an architecture without constants of one library's attention has those of any attention, and writes "
    "none") {
  KernelConstants own = *load_lab({{"cluster.machine.gpu", inline_gpu}}).cluster.gpu.kernels;
  const auto read_again = [&] {
    return load_lab({{"cluster.machine.gpu", inline_gpu},
                     {"cluster.machine.gpu.compute", write_kernel_constants(own).dump()}})
        .cluster.gpu.kernels;
  };
  const std::array libraries{
      std::pair{"flash_attention_2", &KernelConstants::flash_attention_2},
      std::pair{"server_attention", &KernelConstants::server_attention},
  };
  for (const auto& [section, of_library] : libraries) own.*of_library = own.attention;
  for (const auto& [section, of_library] : libraries) {
    CAPTURE(section);
    CHECK_FALSE(write_kernel_constants(own).contains(section));
    CHECK(read_again() == own);
    (own.*of_library).alone = own.attention.alone + Ratio::parts_per_million(1);
    CHECK(write_kernel_constants(own).contains(section));
    CHECK(read_again() == own);
  }
}

TEST_CASE("a memory efficiency that a GPU states beats its architecture's") {
  const KernelConstants shipped = *load_lab({{"cluster.machine.gpu", inline_gpu}}).cluster.gpu.kernels;
  const GpuSpec gpu =
      load_lab({{"cluster.machine.gpu", inline_gpu}, {"cluster.machine.gpu.memory_efficiency", "0.321"}})
          .cluster.gpu;
  REQUIRE(shipped.memory.efficiency != Ratio::parts_per_million(321'000));
  CHECK(gpu.kernels.value().memory.efficiency == Ratio::parts_per_million(321'000));
  CHECK(gpu.kernels.value().memory.start == shipped.memory.start);
}

TEST_CASE("constants that are missing, out of range or of no architecture are errors where they stand") {
  const std::string compute = "cluster.machine.gpu.compute";
  const auto problems_with = [&](const std::string& path, const std::string& value) {
    const KernelConstants good = *load_lab({{"cluster.machine.gpu", inline_gpu}}).cluster.gpu.kernels;
    return problems_of_lab({{"cluster.machine.gpu", inline_gpu},
                            {compute, write_kernel_constants(good).dump()},
                            {compute + path, value}});
  };
  const std::string place = "/cluster/machine/gpu/compute";
  CHECK(problems_with(".source", "ours").empty());
  CHECK(contains(problems_of_lab({{"cluster.machine.gpu", inline_gpu}, {compute, "hoper"}}), place + ": "));
  CHECK(contains(problems_of_lab({{"cluster.machine.gpu", inline_gpu}, {compute, "hoper"}}), "hopper"));
  CHECK(contains(problems_with(".tensor", "{}"), place + "/tensor: found no"));
  CHECK(contains(problems_with(".tensor.efficiency", "0"), place + "/tensor/efficiency: "));
  CHECK(contains(problems_with(".tensor.tile", "2 s"), place + "/tensor/tile: "));
  CHECK(contains(problems_with(".tensor.draw", "2 kW"), place + "/tensor/draw: "));
  CHECK(contains(problems_with(".tensor.across", "0"), place + "/tensor/across: "));
  CHECK(contains(problems_with(".vector.operands", "1 B/s"), place + "/vector/operands: "));
  CHECK(contains(problems_with(".attention.alone", "-1"), place + "/attention/alone: "));
  CHECK(contains(problems_with(".server_attention", "{}"), place + "/server_attention: found no"));
  CHECK(contains(problems_with(".flash_attention_2", "{}"), place + "/flash_attention_2: found no"));
  CHECK(contains(problems_with(".attention.fill", "2 s"), place + "/attention/fill: "));
  CHECK(contains(problems_with(".memory.starts", "1 us"), place + "/memory/starts: "));
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
  CHECK(contains(problems_of_lab({{machine, inline_gpu}, {machine + ".tdp", "0 W"}}),
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
  CHECK(contains(
      problems_of_lab({{"cluster.machine.gpu", inline_gpu}, {"cluster.machine.gpu.memory", "0 GiB"}}),
      "/cluster/machine/gpu/memory: "));
}

TEST_CASE(
    "what an operator costs the host is the machine's to say, up to a second, and is written out again") {
  const auto with_time = [](const char* time) {
    return Overrides{{"cluster.machine.host.operator_time", std::string("\"") + time + "\""}};
  };
  const LoadedScenario scenario = load_resnet(with_time("7.5 us"));
  CHECK(scenario.cluster.machine.host.operator_time == Duration::nanoseconds(7'500));
  CHECK(scenario.resolved["cluster"]["machine"]["host"]["operator_time"] == "7.5 us");
  CHECK(load_resnet().cluster.machine.host.operator_time == Duration::nanoseconds(25'400));
  CHECK_FALSE(load_resnet({{"cluster.machine", "dgx_h100"}}).cluster.machine.host.operator_time.has_value());
  const std::string problem = problems_of_resnet(with_time("2 s"));
  CHECK(contains(problem, "/host/operator_time: "));
  CHECK(contains(problem, "expected at most 1"));
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
  for (const char* fabric : {R"({"kind": "single_switch", "oversubscription": 8})",
                             R"({"kind": "torus", "dims": [2], "oversubscription": 1.5})"})
    CHECK(contains(problems_of_resnet({{"cluster.fabric", fabric}}), "fewer ports up than down"));
}

TEST_CASE("GPUs of one node that nothing joins are an error") {
  const std::string found = problems_of_lab({{"cluster.machine.gpus", "2"}});
  CHECK(contains(found, "/cluster/gpus_per_node: found 2"));
  CHECK(contains(found, "host.pcie"));
  CHECK(problems_of_lab({{"cluster.machine.gpus", "2"}, {"cluster.machine.host", R"({"pcie": "pcie4_x16"})"}})
            .empty());
}

}  // namespace lockstep::read_hardware_test
