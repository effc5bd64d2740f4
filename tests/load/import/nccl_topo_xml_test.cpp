#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/load/import/imported_machine.h"

namespace lockstep::nccl_topo_xml_test {

constexpr const char* kind = "nccl_topo_xml";
using Json = nlohmann::ordered_json;
using Lists = std::vector<std::vector<std::int64_t>>;

std::string gpu(int dev, const std::string& links, const std::string& attributes = "sm=\"60\"") {
  return fmt::format(
      "<pci busid=\"0000:0{0}:00.0\" class=\"0x030200\" link_speed=\"8 GT/s\" link_width=\"16\"><gpu "
      "dev=\"{0}\" {1} rank=\"{0}\">"
      "{2}</gpu></pci>\n",
      dev, attributes, links);
}

std::string link_to(int dev, int count = 4) {
  return fmt::format("<nvlink target=\"0000:0{}:00.0\" count=\"{}\" tclass=\"0x030200\"/>", dev, count);
}

std::string system_of(const std::string& devices) {
  return "<system version=\"1\">\n<cpu numaid=\"0\" vendor=\"GenuineIntel\" familyid=\"6\" "
         "modelid=\"79\">\n" +
         devices + "</cpu>\n</system>\n";
}

TEST_CASE("a virtual machine with eight H100 behind NVSwitches: everything but the fabric is said") {
  const MachineSpec machine = imported_machine(kind, "h100_vm.xml");
  CHECK(machine.gpu == "h100_sxm_80gb");
  CHECK(machine.gpu_links == machine_from("dgx_h100").gpu_links);  // 4 + 5 + 5 + 4 links to four switches
  CHECK(machine.host.socket_link->name == "upi_sapphire_rapids");
  CHECK(machine.host.pcie_switches == Lists{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}});
  REQUIRE(machine.nics.size() == 8);
  CHECK(machine.nics[0].link.name == "roce_200g");
  CHECK(machine.nics[7].gpus == std::vector<std::int64_t>{7});  // mlx5_0
}

TEST_CASE(
    "eight A100 with a NIC for each pair: the tree gives switches, and the NIC on the root is left aside") {
  const Imported imported = import_text(kind, topology_dump("a100_four_nics.xml"));
  const MachineSpec machine = machine_from(imported.document);
  CHECK(machine.gpu == "a100_sxm_80gb");
  CHECK(machine.gpu_links == machine_from("dgx_a100_80gb").gpu_links);
  CHECK(machine.host.pcie->name == "pcie4_x16");
  CHECK(machine.host.socket_link->name == "upi_icelake");
  CHECK(machine.host.pcie_switches == Lists{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  REQUIRE(machine.nics.size() == 4);
  CHECK(machine.nics[2].gpus == std::vector<std::int64_t>{4, 5});
  const auto unused = std::find_if(imported.keys.begin(), imported.keys.end(),
                                   [](const KeyUse& use) { return use.key == "mlx5_bond_0"; });
  REQUIRE(unused != imported.keys.end());
  CHECK(unused->fate == KeyFate::left_aside);
}

TEST_CASE(
    "RCCL's dump of a virtual machine with eight MI300X: the shipped mesh, and NICs dealt out to GPUs") {
  const MachineSpec machine = imported_machine(kind, "mi300x_vm.xml");
  CHECK(machine.gpu == "mi300x");
  CHECK(machine.gpu_links == machine_from("mi300x_8gpu").gpu_links);
  CHECK(machine.library == LibraryKind::rccl);
  REQUIRE(machine.nics.size() == 8);
  CHECK(machine.nics[5].link.name == "ndr400");
  CHECK(machine.nics[5].gpus == std::vector<std::int64_t>{5});
}

TEST_CASE("a GPU that is not shipped, sockets of APUs and a rate that no NIC has are asked for") {
  const std::string asked = refusal_of(kind, topology_dump("mi300a_four.xml"));
  CHECK(says(asked, "not shipped (1002:74a0)"));
  CHECK(says(asked, "--set host.sockets="));
  CHECK(says(asked, "NIC cxi0 has (200000000 Mbit/s"));
}

TEST_CASE("where generation and links leave one GPU it is taken, else it is asked for") {
  const auto pair = [](int links, const char* sm) {
    return system_of(gpu(0, link_to(1, links), sm) + gpu(1, link_to(0, links), sm));
  };
  CHECK(import_text(kind, pair(4, "sm=\"60\"")).document["gpu"] == "p100_sxm2_16gb");
  CHECK(says(refusal_of(kind, pair(12, "sm=\"80\"")), "12 links each: a100_sxm_40gb, a100_sxm_80gb"));
}

TEST_CASE("links and GPUs that cannot be are refused with the line") {
  CHECK(says(refusal_of(kind, system_of(gpu(0, link_to(1, 2)) + gpu(1, link_to(0, 1)))),
             "dump:4: found 1 links from GPU 1 to GPU 0 and 2 back"));
  CHECK(says(refusal_of(kind, system_of(gpu(0, link_to(1)) + gpu(1, ""))), "expected as many"));
  CHECK(says(refusal_of(kind, system_of(gpu(0, link_to(1, -1)) + gpu(1, link_to(0)))),
             "dump:3: found count=\"-1\""));
  CHECK(says(refusal_of(kind, system_of(gpu(0, "") + gpu(0, ""))),
             "dump:4: found GPU dev=\"0\", expected each of 0 to 1 once"));
  CHECK(says(refusal_of(kind, system_of("")), "found no <gpu>"));
  const std::string switches = "<nvlink target=\"ffff:ff:ff.f\" count=\"6\" tclass=\"0x068000\"/>";
  CHECK(says(refusal_of(kind, system_of(gpu(0, switches) + gpu(1, ""))),
             "found 0 links to switches, expected 6"));
}

TEST_CASE("a bomb of entities, a tree without end, a thousand GPUs and broken XML are refused") {
  const std::string bomb =
      "<!DOCTYPE lolz [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b "
      "\"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">]>\n<system><cpu>&b;</cpu></system>";
  CHECK(says(refusal_of(kind, bomb), "dump:1: found a document type"));
  std::string deep;
  for (int level = 0; level < 100'000; ++level) deep += "<pci>";
  CHECK(says(refusal_of(kind, "<system><cpu>" + deep), "dump:1: "));
  for (int level = 0; level < 100'000; ++level) deep += "</pci>";
  CHECK(says(refusal_of(kind, "<system><cpu>" + deep + "</cpu></system>"), "more than 64 deep"));
  std::string many;
  for (int dev = 0; dev < 1000; ++dev) many += gpu(dev, "");
  CHECK(says(refusal_of(kind, system_of(many)), "found 1000 GPUs and 0 NICs, expected at most 256"));
  CHECK(says(refusal_of(kind, "<system>\n<cpu>\n</system>"), "dump:3: "));
  CHECK(says(refusal_of(kind, "<html></html>"), "found no <system>"));
  CHECK(says(refusal_of(kind, std::string(4096, '\0')), "dump:1: "));
}

TEST_CASE("two hosts in one dump are refused, and names of strangers are printed as text") {
  const std::string two = "<system><cpu numaid=\"0\" host_hash=\"1\">" + gpu(0, "") +
                          "</cpu><cpu numaid=\"0\" host_hash=\"2\">" + gpu(1, "") + "</cpu></system>";
  CHECK(says(refusal_of(kind, two), "found 2 hosts"));
  const std::string hostile =
      refusal_of(kind, system_of("<pci busid=\"x\"><gpu dev=\"&#27;]0;owned\"/></pci>"));
  CHECK(says(hostile, "\\u001b"));
  CHECK_FALSE(says(hostile, "\x1b"));
}

TEST_CASE("every attribute is accounted for, and a dump is recognised among other files") {
  const Imported imported = import_text(kind, topology_dump("h100_vm.xml"));
  const auto fate = [&](const std::string& key) {
    const auto found = std::find_if(imported.keys.begin(), imported.keys.end(),
                                    [&](const KeyUse& use) { return use.key == key; });
    REQUIRE(found != imported.keys.end());
    return found->fate;
  };
  CHECK(fate("gpu sm") == KeyFate::used);
  CHECK(fate("net speed") == KeyFate::used);
  CHECK(fate("net maxconn") == KeyFate::left_aside);
  CHECK(importer_of(topology_dump("mi300x_vm.xml"))->first == kind);
}

}  // namespace lockstep::nccl_topo_xml_test
