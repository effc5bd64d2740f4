#include "sim/network/hamilton.h"

#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "tests/support/clusters.h"
#include "tests/support/link_matrices.h"
#include "tests/support/property.h"

namespace lockstep::hamilton_test {

void check_largest(const LinkMatrix& matrix, std::size_t expected) {
  const CycleSet set = find_disjoint_cycles(matrix);
  INFO(matrix.size(), " GPUs");
  CHECK(set.cycles.size() == expected);
  CHECK(set.bound >= expected);
  CHECK(set.is_largest);
  CHECK(are_disjoint_cycles(set.cycles, matrix));
}

// Every GPU of a DGX-1V has 6 links and a cycle takes 2 of each: at most 3 cycles, and 3 x 8 cycle edges are
// all 24 links of the cube mesh, so each is used exactly once.
TEST_CASE("A DGX-1V holds three cycles that use every NVLink once") {
  const LinkMatrix matrix = dgx1v_matrix();
  check_largest(matrix, 6 / 2);
  CHECK(used_links(find_disjoint_cycles(matrix).cycles, 8) == matrix);
}

// What measured tables were fitted with: these three and no others.
TEST_CASE("The cycles of a DGX-1V are those that they always were") {
  CHECK(find_disjoint_cycles(dgx1v_matrix()).cycles ==
        Cycles{{0, 1, 2, 3, 7, 5, 6, 4}, {0, 2, 6, 7, 4, 5, 1, 3}, {0, 3, 2, 1, 5, 6, 7, 4}});
}

// Four GPUs, two links between each pair: degree 6, so 3 cycles, and 3 x 4 edges are all 12 links.
TEST_CASE("Four GPUs joined twice each hold three cycles") {
  check_largest(complete_mesh(4, 2), 3 * 2 / 2);
  CHECK(used_links(find_disjoint_cycles(complete_mesh(4, 2)).cycles, 4) == complete_mesh(4, 2));
}

// A single K4 has degree 3: one cycle, and a perfect matching is left over.
TEST_CASE("Four GPUs joined once each hold one cycle") {
  check_largest(complete_mesh(4), 3 / 2);
}

TEST_CASE("Between two GPUs every link is a cycle of its own") {
  CHECK(find_disjoint_cycles({{0, 4}, {4, 0}}).cycles == Cycles(4, {0, 1}));
}

TEST_CASE("Where no cycle exists none is found, and none is what is proven") {
  for (const LinkMatrix& matrix : {LinkMatrix{{0, 1, 0}, {1, 0, 1}, {0, 1, 0}}, LinkMatrix{{0, 0}, {0, 0}},
                                   LinkMatrix{{0}}, LinkMatrix{}})
    CHECK(find_disjoint_cycles(matrix) == CycleSet{});
}

// Petersen's graph: three links a GPU, no cut of fewer, and no Hamilton cycle. Only trying all ways shows it.
TEST_CASE("Where cuts allow a cycle and there is none, all ways are tried") {
  LinkMatrix matrix = no_links(10);
  for (std::size_t gpu = 0; gpu < 5; ++gpu) {
    join(matrix, gpu, (gpu + 1) % 5);
    join(matrix, gpu, gpu + 5);
    join(matrix, gpu + 5, (gpu + 2) % 5 + 5);
  }
  CHECK(find_disjoint_cycles(matrix) == CycleSet{.cycles = {}, .bound = 1, .is_largest = true});
}

// n - 1 links a GPU, two of them a cycle.
TEST_CASE("A complete mesh of any size holds half as many cycles as a GPU has links, 32 at most") {
  for (std::size_t gpus : {3, 4, 5, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65, 100, 128, 255, 256})
    for (std::int64_t links : {1, 2, 3})
      check_largest(complete_mesh(gpus, links),
                    std::min<std::size_t>((gpus - 1) * static_cast<std::size_t>(links) / 2, most_cycles));
}

// Four links a GPU, or three where a dimension has two places. The depth-first search alone never ends on 6 x 6.
TEST_CASE("A torus of two dimensions holds two cycles, and one where it is two GPUs wide") {
  for (std::size_t width : {2, 3, 4, 5, 6, 7, 8, 11, 13, 16})
    for (std::size_t length : {3, 4, 6, 9, 12, 15, 16})
      check_largest(torus({width, length}), width == 2 ? 1 : 2);
  check_largest(torus({3, 85}), 2);
  check_largest(torus({2, 127}), 1);
}

TEST_CASE("A torus of more dimensions holds a cycle for each, and cubes half as many") {
  check_largest(torus({4, 4, 4}), 3);
  check_largest(torus({3, 5, 7}), 3);
  check_largest(torus({4, 4, 4, 4}), 4);
  check_largest(torus({2, 2, 2, 2, 2}), 5 / 2);
  check_largest(torus({2, 2, 2, 2, 2, 2, 2}), 7 / 2);
  check_largest(torus({2, 2, 2, 2, 2, 2, 2, 2}), 8 / 2);
}

// Two complete meshes of 20 with one link between: whatever is inside, a cycle would need two.
TEST_CASE("A narrow cut bounds the cycles, however many links each GPU has") {
  LinkMatrix matrix = no_links(40);
  for (std::size_t a = 0; a < 40; ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (a / 20 == b / 20)
        join(matrix, a, b);
  join(matrix, 0, 20);
  CHECK(most_disjoint_cycles(matrix) == 0);
  join(matrix, 1, 21);
  CHECK(most_disjoint_cycles(matrix) == 1);
  check_largest(matrix, 1);
}

// A cycle joins two GPUs once, so that the other four of five parallel links are no one's.
TEST_CASE("Parallel links count for as many cycles as there are") {
  LinkMatrix matrix = no_links(3);
  join(matrix, 0, 1, 5);
  join(matrix, 1, 2);
  join(matrix, 2, 0);
  check_largest(matrix, 1);
}

TEST_CASE("Whatever the links, cycles visit every GPU once, share no link, and are no more than the bound") {
  check_for_all(60, "cycles of any matrix", [] {
    const LinkMatrix matrix = any_matrix();
    const CycleSet set = find_disjoint_cycles(matrix);
    RC_ASSERT(are_disjoint_cycles(set.cycles, matrix));
    RC_ASSERT(set.cycles.size() <= set.bound);
    RC_ASSERT(set.bound <= most_cycles);
    RC_ASSERT(set.is_largest || set.cycles.size() < set.bound);
    RC_ASSERT(find_disjoint_cycles(matrix) == set);
  });
}

// Each path takes n - 1 of the n (n - 1) / 2 links: n / 2 paths use all.
TEST_CASE("Paths through a complete mesh of an even number use every link once and end at every GPU once") {
  for (std::uint32_t gpus : {2, 4, 6, 8, 16, 64, 256}) {
    std::vector<std::uint32_t> all(gpus);
    std::iota(all.begin(), all.end(), 0u);
    const auto paths = find_disjoint_paths(complete_mesh(gpus), all);
    CHECK(paths.size() == gpus / 2);
    CHECK(used_links(paths, gpus, false) == complete_mesh(gpus));
    std::set<std::uint32_t> ends;
    for (const GpuOrder& path : paths) {
      CHECK(visits_all(path, gpus));
      ends.insert({path.front(), path.back()});
    }
    CHECK(ends.size() == gpus);
  }
}

TEST_CASE("Paths lead from one of the ends to another, and share no link") {
  for (const LinkMatrix& matrix : {complete_mesh(8), complete_mesh(7), complete_mesh(9, 2), torus({4, 4})}) {
    const std::vector<std::uint32_t> ends{1, 2, 4, 5};
    const auto paths = find_disjoint_paths(matrix, ends);
    REQUIRE(paths.size() == 2);
    CHECK(is_within(used_links(paths, matrix.size(), false), matrix));
    std::multiset<std::uint32_t> found;
    for (const GpuOrder& path : paths) {
      CHECK(visits_all(path, matrix.size()));
      found.insert({path.front(), path.back()});
    }
    CHECK(found == std::multiset<std::uint32_t>(ends.begin(), ends.end()));
  }
}

TEST_CASE("Where there are no such paths none are found") {
  CHECK(find_disjoint_paths({{0, 0}, {0, 0}}, {0, 1}).empty());
  CHECK(find_disjoint_paths(complete_mesh(4), {0, 1, 2}).empty());
}

}  // namespace lockstep::hamilton_test
