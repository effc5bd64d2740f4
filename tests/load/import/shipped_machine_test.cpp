#include "sim/load/import/shipped_machine.h"

#include <doctest/doctest.h>

#include "sim/load/reading/store_shelf.h"
#include "tests/support/scenarios.h"

namespace lockstep::shipped_machine_test {

using Json = nlohmann::ordered_json;

const StoreShelf& shelf() {
  static const StoreShelf shelf(shipped_profiles());
  return shelf;
}

MachineClaims claims(const std::string& machine) {
  return claims_of(*shelf().find(ShelfKind::machine, machine));
}

TEST_CASE("a shipped machine agrees with itself, and with no other in all that it says, but for its twins") {
  for (const std::string& name : shipped_machine_names()) {
    CAPTURE(name);
    const std::vector<std::string> alike = find_alike(claims(name), shelf());
    CHECK(std::find(alike.begin(), alike.end(), name) != alike.end());
    for (const std::string& other : alike) CHECK(claims(other).gpu == claims(name).gpu);
  }
}

TEST_CASE("what is not said agrees with anything, what is said must be the same") {
  MachineClaims said{.gpu = "", .gpus = 8};
  CHECK(find_disagreements(said, claims("dgx_h100")).empty());
  said.gpu = "h100_sxm_80gb";
  said.gpu_links = {{"links_per_gpu", 18}, {"kind", "nvswitch"}, {"link", ""}};  // the link is not said
  CHECK(find_disagreements(said, claims("dgx_h100")).empty());
  said.gpu_links["links_per_gpu"] = 12;
  said.sockets = 1;
  said.nics = std::vector<NicPlace>{{.link = "ndr400", .gpus = {0}}};
  CHECK(find_disagreements(said, claims("dgx_h100")) ==
        std::vector<std::string>{"GPUs are joined in another way", "1 NICs instead of 8",
                                 "1 sockets instead of 2"});
}

TEST_CASE("GPUs are found by what drivers, PCI and people call them") {
  CHECK(find_gpu("NVIDIA A100-SXM4-80GB", shelf()) == "a100_sxm_80gb");
  CHECK(find_gpu("10de:20b0", shelf()) == "a100_sxm_40gb");
  CHECK(find_gpu("1002:74a1", shelf()) == "mi300x");
  CHECK(find_gpu("AMD Instinct MI300X OAM", shelf()) == "mi300x");
  CHECK(find_gpu("10de:ffff", shelf()).empty());
}

TEST_CASE("a GPU's link is that of shipped machines with it, or of its compute capability") {
  CHECK(peer_link_of("a100_sxm_80gb", shelf()) == "nvlink3");
  CHECK(peer_link_of("h20", shelf()) == "nvlink4");  // no machine has it: 9.0, as the H100
  CHECK(peer_link_of("mi300x", shelf()) == "infinity_fabric");
  CHECK(peer_link_of("mi210", shelf()).empty());
  CHECK(peer_link_of("rtx4090", shelf()).empty());
  // Of an A100 to its switches; of a pair of H100 NVL to each other.
  CHECK(gpus_with_links(12, shelf()) ==
        std::vector<std::string>{"a100_sxm_40gb", "a100_sxm_80gb", "h100_nvl"});
}

TEST_CASE("a profile of other kinds of values is no machine, and no bug") {
  for (const Json& broken :
       {Json{{"gpus", "many"}, {"nics", "none"}}, Json{{"nics", 7}}, Json{{"host", {{"pcie_switches", "x"}}}},
        Json{{"nics", {{"count", 1'000'000'000'000}, {"link", 3}}}}, Json::array(), Json("dgx_h100"),
        Json(nullptr)})
    CHECK(claims_of(broken).gpu.empty());
}

}  // namespace lockstep::shipped_machine_test
