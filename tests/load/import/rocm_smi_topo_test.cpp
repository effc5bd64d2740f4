#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/load/import/imported_machine.h"

namespace lockstep::rocm_smi_topo_test {

constexpr const char* kind = "rocm_smi_topo";
using Json = nlohmann::ordered_json;

std::string matrix(const std::string& title, int gpus, const std::string& word) {
  std::string text = "=== " + title + " between two GPUs ===\n  ";
  for (int gpu = 0; gpu < gpus; ++gpu) text += fmt::format(" GPU{}", gpu);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    text += fmt::format("\nGPU{}", gpu);
    for (int other = 0; other < gpus; ++other) text += " " + (gpu == other ? std::string("0") : word);
  }
  return text + "\n";
}

TEST_CASE("eight MI300X are the shipped machine link for link, printed and as JSON") {
  for (const char* dump : {"mi300x.txt", "mi300x_showtopo.json"})
    check_is_built_as(imported_machine(kind, dump, {{"machine", "mi300x_8gpu"}}), "mi300x_8gpu");
}

TEST_CASE("a GPU's name in the same listing is taken, and what the listing says nothing of is told") {
  const Json stated{{"host", {{"socket_link", "xgmi"}}}};
  const Imported imported = import_text(kind, topology_dump("mi300x.txt"), stated);
  CHECK(imported.document["gpu"] == "mi300x");
  CHECK(imported.document["host"]["sockets"] == 2);
  CHECK_FALSE(imported.document.contains("nics"));
  CHECK(says(imported.warnings.at(0), "says nothing of NICs"));
}

TEST_CASE("two groups of four joined by PCIe are a mesh of two parts") {
  const MachineSpec machine = imported_machine(
      kind, "mi210_two_hives.txt",
      {{"gpu", "mi210"}, {"gpu_links", {{"link", "infinity_fabric"}}}, {"host", {{"socket_link", "xgmi"}}}});
  CHECK(machine.gpu_links.matrix[1] == std::vector<std::int64_t>{1, 0, 1, 1, 0, 0, 0, 0});
  CHECK(machine.gpu_links.matrix[6] == std::vector<std::int64_t>{0, 0, 0, 0, 1, 1, 0, 1});
}

TEST_CASE("a way through other GPUs is no link, and told") {
  const std::string text = matrix("Weight", 2, "30") + matrix("Link Type", 2, "XGMI");
  const Json stated{{"gpu", "mi300x"}, {"host", {{"sockets", 1}}}};
  const Imported imported = import_text(kind, text, stated);
  CHECK(imported.document["gpu_links"] == Json{{"kind", "pcie"}});
  CHECK(says(imported.warnings.at(0), "through others"));
  CHECK(import_text(kind, matrix("Link Type", 2, "XGMI"), stated).document["gpu_links"]["matrix"] ==
        Json{{0, 1}, {1, 0}});
}

TEST_CASE("a listing that is cut off, differs both ways or holds other words is refused with the line") {
  const std::string whole = matrix("Link Type", 3, "XGMI");
  CHECK(says(refusal_of(kind, replaced(whole, "GPU2 XGMI XGMI 0", "GPU2 XGMI XG")),
             "dump:5: found 2 entries, expected one for each of 3"));
  CHECK(says(refusal_of(kind, replaced(whole, "GPU2 XGMI", "GPU2 PCIE")),
             "dump:5: found \"PCIE\" between GPUs 2 and 0 and \"XGMI\""));
  CHECK(says(refusal_of(kind, replaced(whole, "GPU2 XGMI", "GPU2 LASER")), "dump:5: found \"LASER\""));
  CHECK(says(refusal_of(kind, "=== Weight between two GPUs ===\n GPU0 GPU1\nGPU0 0 15\nGPU1 15 0\n"),
             "what joins GPUs 0 and 1"));
  CHECK(says(refusal_of(kind, matrix("Link Type", 300, "PCIE")), "expected at most 256 GPUs"));
  CHECK(says(refusal_of(kind, "garbage"), "found no GPUs"));
}

TEST_CASE("JSON that leaves pairs out or is no JSON is refused") {
  CHECK(says(refusal_of(kind, "{\"card0\": {}, \"card1\": {}}"), "what joins GPUs 0 and 1"));
  CHECK(says(refusal_of(kind, "{\"card0\": {}, \"card7\": {}}"), "expected GPUs 0 to 1"));
  CHECK(
      says(refusal_of(kind, "{\"system\": {\"(Topology) Link type between DRM devices 0 and 1\": \"ROPE\"}}"),
           "found \"ROPE\""));
  CHECK(says(refusal_of(kind, "{\"system\": "), "dump:1:"));
  CHECK(says(
      refusal_of(kind, "{\"system\": {\"(Topology) Link type between DRM devices 0 and 99999\": \"XGMI\"}}"),
      "at most 256 GPUs"));
}

TEST_CASE("both forms are recognised among other files") {
  CHECK(importer_of(topology_dump("mi300x.txt"))->first == kind);
  CHECK(importer_of(topology_dump("mi300x_showtopo.json"))->first == kind);
}

}  // namespace lockstep::rocm_smi_topo_test
