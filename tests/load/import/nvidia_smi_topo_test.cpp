#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/load/import/imported_machine.h"

namespace lockstep::nvidia_smi_topo_test {

constexpr const char* kind = "nvidia_smi_topo";
using Json = nlohmann::ordered_json;

// `gpus` GPUs, every pair joined by `word`.
std::string uniform_matrix(int gpus, const std::string& word) {
  std::string text;
  for (int gpu = 0; gpu < gpus; ++gpu) text += fmt::format("\tGPU{}", gpu);
  text += "\tCPU Affinity\tNUMA Affinity\n";
  for (int gpu = 0; gpu < gpus; ++gpu) {
    text += fmt::format("GPU{}", gpu);
    for (int other = 0; other < gpus; ++other) text += "\t" + (gpu == other ? std::string(" X ") : word);
    text += "\t0-15\t0\n";
  }
  return text;
}

TEST_CASE(
    "a DGX-1V, a DGX A100 and a DGX H100 are the shipped machines link for link, once GPU and NICs are "
    "said") {
  check_is_built_as(imported_machine(kind, "dgx1_v100.txt", {{"gpu", "v100_sxm2_32gb"}, {"nic", "edr100"}}),
                    "dgx1_v100");
  check_is_built_as(imported_machine(kind, "dgx_a100.txt", {{"gpu", "a100_sxm_40gb"}, {"nic", "hdr200"}}),
                    "dgx_a100_40gb");
  check_is_built_as(imported_machine(kind, "dgx_h100.txt", {{"gpu", "h100_sxm_80gb"}, {"nic", "ndr400"}}),
                    "dgx_h100");
}

TEST_CASE("the NICs' link may also be stated where it belongs in a machine") {
  check_is_built_as(
      imported_machine(kind, "dgx_h100.txt", {{"gpu", "h100_sxm_80gb"}, {"nics", {{"link", "ndr400"}}}}),
      "dgx_h100");
}

TEST_CASE("who names the shipped machine is asked nothing more") {
  check_is_built_as(imported_machine(kind, "dgx1_v100.txt", {{"machine", "dgx1_v100"}}), "dgx1_v100");
  check_is_built_as(imported_machine(kind, "dgx_a100.txt", {{"machine", "dgx_a100_80gb"}}), "dgx_a100_80gb");
  check_is_built_as(imported_machine(kind, "dgx_h100.txt", {{"machine", "dgx_h100"}}), "dgx_h100");
  // topo -mp prints no NVLinks: they are lent too.
  check_is_built_as(imported_machine(kind, "dgx1_pcie_alone.txt", {{"machine", "dgx1_v100"}}), "dgx1_v100");
}

TEST_CASE("what neither the file nor the user says is asked for together, by name") {
  const std::string asked = refusal_of(kind, topology_dump("dgx_a100.txt"));
  CHECK(says(asked, "--set gpu=a100_sxm_40gb"));
  CHECK(says(asked, "a100_sxm_40gb, a100_sxm_80gb"));  // those with 12 links
  CHECK(says(asked, "--set host.sockets=2"));          // nodes 1, 3, 5, 7
  CHECK(says(asked, "--set host.socket_link="));
  CHECK(says(asked, "--set nic="));
  CHECK(says(asked, "--set machine=dgx_a100_40gb"));
  const std::string of_pcie =
      refusal_of(kind, topology_dump("dgx1_pcie_alone.txt"),
                 {{"gpu", "v100_sxm2_32gb"}, {"nic", "edr100"}, {"host", {{"socket_link", "qpi"}}}});
  CHECK(says(of_pcie, "--set gpu_links.kind=pcie"));
}

TEST_CASE("a machine that differs from the one its user names keeps what the file says, and is told so") {
  const Imported imported =
      import_text(kind, topology_dump("dgx_a100.txt"), {{"machine", "abci_a"}, {"nic", "hdr200"}});
  REQUIRE(imported.warnings.size() == 1);
  CHECK(says(imported.warnings[0], "is not quite a abci_a: 8 NICs instead of 4"));
  CHECK(imported.document["nics"] == Json{{"count", 8}, {"link", "hdr200"}});
  CHECK(imported.answered == std::vector<std::string>{"nic", "machine"});
}

TEST_CASE("NICs that every GPU has a nearer one than are left to storage and management") {
  const Imported imported =
      import_text(kind, topology_dump("dgx_h100.txt"), {{"gpu", "h100_sxm_80gb"}, {"nic", "ndr400"}});
  std::vector<std::string> left;
  for (const KeyUse& use : imported.keys)
    if (use.fate == KeyFate::left_aside && use.key.starts_with("mlx5"))
      left.push_back(use.key);
  CHECK(left == std::vector<std::string>{"mlx5_1", "mlx5_2", "mlx5_7", "mlx5_8"});
}

TEST_CASE("a GPU's name in the same file, as nvidia-smi -L prints it, is taken") {
  const MachineSpec machine =
      imported_machine(kind, "v100_two_nics.txt", {{"nic", "edr100"}, {"host", {{"socket_link", "upi"}}}});
  CHECK(machine.gpu == "v100_sxm2_16gb");
  CHECK(machine.gpu_links.matrix[0] == std::vector<std::int64_t>{0, 1, 2, 1, 0, 0, 0, 2});
  CHECK(machine.gpu_links.link.name == "nvlink2");
  // GPUs 2, 3 and 6, 7 share a bridge with a NIC; how the others are connected is hidden behind NVLink.
  CHECK(machine.host.pcie_switches == std::vector<std::vector<std::int64_t>>{{2, 3}, {6, 7}});
  CHECK(machine.nics[1].gpus == std::vector<std::int64_t>{4, 5, 6, 7});
}

TEST_CASE("four GPUs with four NVLinks between each pair are a mesh, eight with twelve go through switches") {
  const MachineSpec four =
      imported_machine(kind, "a100_four.txt", {{"gpu", "a100_sxm_40gb"}, {"nic", "hdr200"}});
  CHECK(four.gpu_links.kind == GpuLinkKind::mesh);
  CHECK(four.gpu_links.matrix[0] == std::vector<std::int64_t>{0, 4, 4, 4});
  CHECK(four.nics.size() == 4);
  const Imported eight = import_text(kind, uniform_matrix(8, "NV12"), {{"gpu", "a100_sxm_40gb"}});
  CHECK(eight.document["gpu_links"] ==
        Json{{"kind", "nvswitch"}, {"link", "nvlink3"}, {"links_per_gpu", 12}});
}

TEST_CASE("GPUs without NVLink and NICs are a PCIe machine for one node, with a warning") {
  const Json stated{{"gpu", "rtx4090"}, {"host", {{"socket_link", "xgmi"}}}};
  const MachineSpec machine = imported_machine(kind, "rtx4090_eight.txt", stated);
  CHECK(machine.gpu_links.kind == GpuLinkKind::pcie);
  CHECK(machine.host.sockets == 2);
  CHECK(machine.nics.empty());
  CHECK(says(import_text(kind, topology_dump("rtx4090_eight.txt"), stated).warnings.at(0), "shows no NICs"));
}

TEST_CASE("what a terminal adds to a listing changes nothing") {
  const std::string plain = topology_dump("dgx_a100.txt");
  std::string decorated = "\x1b[0mroot@host:~# nvidia-smi topo -m\r\n";
  for (const char letter : plain)
    decorated += letter == '\n' ? std::string("\x1b[0m\r\n") : std::string(1, letter);
  const Json stated{{"machine", "dgx_a100_40gb"}};
  CHECK(import_text(kind, decorated, stated).document == import_text(kind, plain, stated).document);
}

TEST_CASE("lines that a terminal wrapped are put together again") {
  std::string wrapped;
  for (std::string line; const char letter : topology_dump("dgx_a100.txt")) {
    line += letter == '\t' ? ' ' : letter;
    const bool breaks = line.size() > 90 && letter == '\t';
    wrapped += breaks ? line + "\n" : "";
    if (letter == '\n')
      wrapped += line;
    if (breaks || letter == '\n')
      line.clear();
  }
  const Json stated{{"machine", "dgx_a100_40gb"}};
  CHECK(import_text(kind, wrapped, stated).document ==
        import_text(kind, topology_dump("dgx_a100.txt"), stated).document);
}

TEST_CASE("lines that a terminal cut off are refused with the line") {
  std::string cut;
  for (std::string line; const char letter : topology_dump("dgx_a100.txt")) {
    if (letter == '\n')
      cut += std::exchange(line, "").substr(0, 60) + "\n";
    else
      line += letter;
  }
  CHECK(says(refusal_of(kind, cut), "cut off"));
  CHECK(says(refusal_of(kind, cut), "dump:"));
  const std::string whole = uniform_matrix(4, "NV4");
  CHECK(says(refusal_of(kind, whole.substr(0, whole.find("GPU3", whole.find("GPU3") + 1))),
             "dump:4: found 3 rows"));
  CHECK(says(refusal_of(kind, whole.substr(0, whole.find('\n') + 1)), "dump:1: found a header and no row"));
}

TEST_CASE("a matrix that is not symmetric, or holds other words, is refused with the line") {
  const std::string whole = uniform_matrix(3, "NV4");
  CHECK(says(refusal_of(kind, replaced(whole, "GPU1\tNV4", "GPU1\tNV2")),
             "dump:3: found \"NV2\" from GPU1 to GPU0 and \"NV4\""));
  CHECK(
      says(refusal_of(kind, replaced(whole, "GPU2\tNV4", "GPU2\tFAR")), "dump:4: found \"FAR\" below GPU0"));
  CHECK(says(refusal_of(kind, replaced(whole, "GPU2\tNV4", "GPU2\tNV0")), "\"NV0\""));
  CHECK(says(refusal_of(kind, replaced(whole, "GPU2\tNV4", "GPU2\tNV99999999999999999999")), "dump:4"));
  CHECK(says(refusal_of(kind, replaced(whole, "\tGPU2", "\tGPU7")), "dump:"));
}

TEST_CASE(
    "a thousand GPUs, garbage and hostile names are refused, and nothing they say reaches the terminal") {
  CHECK(says(refusal_of(kind, uniform_matrix(1000, "SYS")),
             "found 1000 GPUs and 0 NICs, expected at most 256"));
  CHECK(says(refusal_of(kind, std::string(1000, '\xff')), "found no table"));
  CHECK(says(refusal_of(kind, "GPU0\n"), "dump:1"));
  CHECK(says(refusal_of(kind, ""), "empty"));
  const std::string hostile =
      refusal_of(kind, replaced(uniform_matrix(3, "NV4"), "GPU2\tNV4", "GPU2\t\xe2\x80\xaepwned"));
  CHECK(says(hostile, "\\u202e"));
  CHECK_FALSE(says(hostile, "\xe2\x80\xae"));
}

TEST_CASE("a listing is recognised among other files") {
  CHECK(importer_of(topology_dump("dgx_h100.txt"))->first == kind);
  CHECK(importer_of(uniform_matrix(1, ""))->first == kind);
  CHECK(importer_of("{\"name\": \"GPU0 X\"}") == nullptr);
}

}  // namespace lockstep::nvidia_smi_topo_test
