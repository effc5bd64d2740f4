#include "sim/load/import/machine_facts.h"

#include <doctest/doctest.h>

namespace lockstep::machine_facts_test {

using enum PciePath;
using Gpus = std::vector<std::int64_t>;

MachineFacts facts_with(std::vector<std::vector<PciePath>> nics) {
  MachineFacts facts{.gpus = nics.front().size()};
  facts.gpu_paths.assign(facts.gpus, std::vector<PciePath>(facts.gpus, unknown));
  for (const std::vector<PciePath>& paths : nics) facts.nics.push_back({.name = "nic", .to_gpus = paths});
  return facts;
}

TEST_CASE("a NIC belongs to the GPUs that have no nearer one") {
  const std::vector<PlacedNic> placed =
      place_nics(facts_with({{sys, sys, pix, phb}, {pxb, node, sys, sys}, {sys, sys, sys, sys}}));
  REQUIRE(placed.size() == 2);
  CHECK(placed[0].nic == 1);
  CHECK(placed[0].gpus == Gpus{0, 1});
  CHECK(placed[1].nic == 0);
  CHECK(placed[1].gpus == Gpus{2, 3});
}

TEST_CASE("NICs that are alike near to the same GPUs are dealt out, in either direction") {
  const std::vector<PlacedNic> two_each = place_nics(facts_with({{phb, phb}, {phb, phb}}));
  REQUIRE(two_each.size() == 2);
  CHECK(two_each[0].gpus == Gpus{0});
  CHECK(two_each[1].gpus == Gpus{1});
  const std::vector<PlacedNic> four =
      place_nics(facts_with({{pix, pix}, {pix, pix}, {pix, pix}, {pix, pix}}));
  REQUIRE(four.size() == 4);
  CHECK(four[1].gpus == Gpus{0});
  CHECK(four[2].gpus == Gpus{1});
  const std::vector<PlacedNic> one = place_nics(facts_with({{phb, phb}}));
  REQUIRE(one.size() == 1);
  CHECK(one[0].gpus == Gpus{0, 1});
}

TEST_CASE("GPUs that reach one NIC below a root port share it, whatever hides the way between them") {
  CHECK(find_pcie_switches(facts_with({{pxb, pxb, sys, sys}, {sys, sys, pix, node}})) ==
        std::vector<Gpus>{{0, 1}, {2}});
  MachineFacts facts = facts_with({{node, node}});
  CHECK(find_pcie_switches(facts).empty());
  facts.gpu_paths = {{unknown, pxb}, {pxb, unknown}};
  CHECK(find_pcie_switches(facts) == std::vector<Gpus>{{0, 1}});
}

TEST_CASE("NUMA nodes 0 and 1 are sockets; more of them, or none, may be anything") {
  CHECK(count_sockets({0, 0}) == 1);
  CHECK(count_sockets({0, 1}) == 2);
  CHECK(count_sockets({1, 1}) == 2);
  CHECK(count_sockets({3, 1, 7, 5}) == 0);
  CHECK(count_sockets({0, 8}) == 0);
  CHECK(count_sockets({-1, 0}) == 0);
  CHECK(count_sockets({}) == 0);
}

}  // namespace lockstep::machine_facts_test
