#include "sim/network/two_factors.h"

#include <doctest/doctest.h>

#include "tests/support/link_matrices.h"
#include "tests/support/property.h"

namespace lockstep::two_factors_test {

// Rows and columns of a torus are two-factors, and no square of it joins two GPUs twice.
TEST_CASE("The cycles of a torus are pieced together until each passes every GPU") {
  for (const auto& dims : {std::vector<std::size_t>{3, 3}, {6, 6}, {5, 8}, {16, 16}, {4, 4, 4}}) {
    const LinkMatrix matrix = torus(dims);
    const Cycles cycles = merge_two_factors(matrix, dims.size());
    CHECK(cycles.size() == dims.size());
    CHECK(used_links(cycles, matrix.size()) == matrix);  // every link once
  }
}

// Three links a GPU: one factor, and a link of each GPU that is left over.
TEST_CASE("GPUs of an odd number of links leave one out") {
  const LinkMatrix prism = torus({2, 31});
  const Cycles cycles = merge_two_factors(prism, 1);
  REQUIRE(cycles.size() == 1);
  CHECK(are_disjoint_cycles(cycles, prism));
}

TEST_CASE("Parts that no link joins are never one cycle") {
  LinkMatrix matrix = no_links(6);
  for (const std::size_t first : {0, 3})
    for (std::size_t gpu = 0; gpu < 3; ++gpu) join(matrix, first + gpu, first + (gpu + 1) % 3);
  CHECK(merge_two_factors(matrix, 1).empty());
}

TEST_CASE("Whatever the links, merged factors visit every GPU once and share no link") {
  check_for_all(40, "merged factors of any matrix", [] {
    const LinkMatrix matrix = any_matrix();
    RC_ASSERT(are_disjoint_cycles(merge_two_factors(matrix, 4), matrix));
  });
}

}  // namespace lockstep::two_factors_test
