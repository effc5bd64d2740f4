#include <doctest/doctest.h>

#include "sim/base/random.h"
#include "tests/load/import/imported_machine.h"

namespace lockstep::damaged_dumps_test {

// Letters changed, pieces cut out, put in again elsewhere.
std::string damaged(std::string text, std::uint64_t draw) {
  constexpr std::string_view letters = "0123456789XNVPIBSY.,-:;[](){}<>/\"\\&=\n\r\t \x1b\x01\x80\xff";
  const std::uint64_t changes = 1 + keyed_random(1, draw, 0) % 8;
  for (std::uint64_t change = 0; change < changes && !text.empty(); ++change) {
    const std::uint64_t bits = keyed_random(2, draw, change);
    const std::size_t place = (bits >> 16U) % text.size();
    switch (bits % 4) {
      case 0:
        text[place] = letters[(bits >> 4U) % letters.size()];
        break;
      case 1:
        text.erase(place, 1 + (bits >> 40U) % 200);
        break;
      case 2:
        text.insert(place, 1, letters[(bits >> 4U) % letters.size()]);
        break;
      default:
        text.insert(place, text.substr((bits >> 32U) % text.size(), (bits >> 48U) % 300));
    }
  }
  return text;
}

// It becomes a machine that its reader takes or refuses, or it is refused; questions may stay open.
void check_that_it_ends_well(const std::string& kind, const std::string& text, const StoreShelf& shelf) {
  std::istringstream file(text);
  const ImportRequest request{.file_name = "dump", .file = file, .profiles = &shelf};
  try {
    const Imported imported = importer_named(kind).second.import(request);
    CHECK_FALSE(imported.keys.empty());
    LoadContext context{.store = shipped_profiles(), .folder = ""};
    JsonDocument document = JsonDocument::from_value(imported.document, "dump");
    read_machine(document.root(), Place{context, ""});
  } catch (const ConfigError& error) {
    CHECK_FALSE(error.problems.empty());
  }
}

TEST_CASE("no damage to a dump crashes its importer") {
  const StoreShelf shelf(shipped_profiles());
  const std::vector<std::pair<std::string, std::string>> dumps{
      {"nvidia_smi_topo", "dgx_a100.txt"},      {"nvidia_smi_topo", "dgx1_v100.txt"},
      {"nvidia_smi_topo", "v100_two_nics.txt"}, {"nccl_topo_xml", "mi300a_four.xml"},
      {"nccl_topo_xml", "a100_four_nics.xml"},  {"rocm_smi_topo", "mi210_two_hives.txt"},
      {"rocm_smi_topo", "mi300x_showtopo.json"}};
  for (const auto& [kind, name] : dumps) {
    const std::string whole = topology_dump(name);
    REQUIRE_FALSE(whole.empty());
    for (std::uint64_t draw = 0; draw < 1000; ++draw) {
      CAPTURE(name);
      CAPTURE(draw);
      check_that_it_ends_well(kind, damaged(whole, draw), shelf);
    }
  }
}

}  // namespace lockstep::damaged_dumps_test
