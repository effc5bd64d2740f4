#include "sim/network/ring_search.h"

#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "sim/network/routing.h"
#include "tests/support/clusters.h"

namespace lockstep {
namespace {

using Cycles = std::vector<std::vector<std::uint32_t>>;

// How often each pair is joined by the cycles.
LinkMatrix used_links(const Cycles& cycles, std::size_t gpus) {
  LinkMatrix used(gpus, std::vector<std::int64_t>(gpus));
  for (const auto& cycle : cycles)
    for (std::size_t place = 0; place < cycle.size(); ++place) {
      const std::uint32_t a = cycle[place];
      const std::uint32_t b = cycle[(place + 1) % cycle.size()];
      ++used[a][b];
      ++used[b][a];
    }
  return used;
}

void check_cycles(const Cycles& cycles, const LinkMatrix& matrix) {
  const LinkMatrix used = used_links(cycles, matrix.size());
  for (std::size_t a = 0; a < matrix.size(); ++a)
    for (std::size_t b = 0; b < matrix.size(); ++b) CHECK(used[a][b] <= matrix[a][b]);
  for (const auto& cycle : cycles) {
    CHECK(cycle.front() == 0);
    CHECK(std::set<std::uint32_t>(cycle.begin(), cycle.end()).size() == matrix.size());
  }
}

// Every GPU of a DGX-1V has 6 links and a cycle takes 2 of each: at most 3 cycles, and 3 x 8 cycle edges are
// all 24 links of the cube mesh, so each is used exactly once.
TEST_CASE("A DGX-1V holds three cycles that use every NVLink once") {
  const LinkMatrix matrix = dgx1v_matrix();
  const Cycles cycles = find_disjoint_cycles(matrix);
  REQUIRE(cycles.size() == std::accumulate(matrix[0].begin(), matrix[0].end(), std::int64_t{0}) / 2);
  check_cycles(cycles, matrix);
  CHECK(used_links(cycles, 8) == matrix);
}

// Four GPUs, two links between each pair: degree 6, so 3 cycles, and 3 x 4 edges are all 12 links.
TEST_CASE("Four GPUs joined twice each hold three cycles") {
  const LinkMatrix matrix{{0, 2, 2, 2}, {2, 0, 2, 2}, {2, 2, 0, 2}, {2, 2, 2, 0}};
  const Cycles cycles = find_disjoint_cycles(matrix);
  CHECK(cycles.size() == 3 * 2 / 2);
  check_cycles(cycles, matrix);
  CHECK(used_links(cycles, 4) == matrix);
}

// A single K4 has degree 3: one cycle, and a perfect matching is left over.
TEST_CASE("Four GPUs joined once each hold one cycle") {
  const LinkMatrix matrix{{0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0}};
  const Cycles cycles = find_disjoint_cycles(matrix);
  CHECK(cycles.size() == 3 / 2);
  check_cycles(cycles, matrix);
}

TEST_CASE("Between two GPUs every link is a ring of its own") {
  CHECK(find_disjoint_cycles({{0, 4}, {4, 0}}) == Cycles(4, {0, 1}));
}

TEST_CASE("Where no cycle exists none is found") {
  CHECK(find_disjoint_cycles({{0, 1, 0}, {1, 0, 1}, {0, 1, 0}}).empty());  // a path
  CHECK(find_disjoint_cycles({{0, 0}, {0, 0}}).empty());
  CHECK(find_disjoint_cycles({{0}}).empty());
}

TEST_CASE("On a mesh each cycle is a ring in both directions") {
  const TestCluster cluster(mesh_machine(dgx1v_matrix(), wire(LinkClass::nvlink, gigabytes_per_second(25))),
                            1);
  const auto crossings = count_crossings(cluster.topology(), ring_flows(cluster.world()));
  CHECK(cluster.world().rings.size() == 3 * 2);
  // Links between a pair are one link of their joint bandwidth: it is crossed once per NVLink.
  for (const LinkId link : cluster.topology().links().ids()) {
    if (cluster.topology().is_compute(link))
      continue;
    const std::int64_t nvlinks =
        cluster.topology().links()[link].bandwidth.count() / gigabytes_per_second(25).count();
    CHECK(crossings[link.index] == nvlinks);
  }
}

TEST_CASE("Round a switch one ring in natural order is enough") {
  const TestCluster cluster(switch_machine(4, wire(LinkClass::nvlink, gigabytes_per_second(100))), 1);
  REQUIRE(cluster.world().rings.size() == 1);
  CHECK(cluster.world().rings[0].local_order == std::vector<std::uint32_t>{0, 1, 2, 3});
}

TEST_CASE("Across nodes every NIC has a ring that enters beside it") {
  MachineSpec machine = switch_machine(8, wire(LinkClass::nvlink, gigabytes_per_second(100)));
  const LinkSpec link = wire(LinkClass::network, gigabytes_per_second(10));
  for (const std::int64_t gpu : {0, 2, 4, 6}) machine.nics.push_back({link, {gpu, gpu + 1}});
  const TestCluster cluster(machine, 2);
  REQUIRE(cluster.world().rings.size() == machine.nics.size());
  for (std::size_t ring = 0; ring < machine.nics.size(); ++ring)
    CHECK(cluster.world().rings[ring].local_order.front() == machine.nics[ring].gpus.front());
}

TEST_CASE("A ring can carry what its narrowest hop leaves to it") {
  MachineSpec machine = switch_machine(2, wire(LinkClass::nvlink, gigabytes_per_second(100)));
  machine.nics = {{wire(LinkClass::network, gigabytes_per_second(10)), {0, 1}}};
  CHECK(TestCluster(machine, 1).world().ring_bandwidth == gigabytes_per_second(100));
  CHECK(TestCluster(machine, 2).world().ring_bandwidth == gigabytes_per_second(10));
}

}  // namespace
}  // namespace lockstep
