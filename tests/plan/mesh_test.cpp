// Where ranks are on a mesh, and which of them a line holds.

#include "sim/plan/mesh.h"

#include <algorithm>
#include <set>

#include "sim/base/check.h"
#include "tests/support/property.h"

namespace lockstep::mesh_test {

using Lines = std::vector<std::vector<Rank>>;

std::vector<Rank> ranks(std::initializer_list<std::uint32_t> indices) {
  std::vector<Rank> result;
  for (const std::uint32_t index : indices) result.push_back(Rank{index});
  return result;
}

// Three nodes of two GPUs.
Mesh grid() {
  return Mesh({{"gpu", 2}, {"node", 3}});
}

Mesh random_mesh() {
  std::vector<AxisSize> axes;
  const int count = *rc::gen::inRange(0, 5);
  for (int axis = 0; axis < count; ++axis)
    axes.push_back({"axis " + std::to_string(axis), *rc::gen::inRange(1u, 6u)});
  return Mesh(axes);
}

// Any of its axes, in any order.
std::vector<std::string> random_axes(const Mesh& mesh) {
  std::vector<std::string> along;
  for (const MeshAxis& axis : mesh.axes())
    if (*rc::gen::arbitrary<bool>())
      along.insert(*rc::gen::arbitrary<bool>() ? along.begin() : along.end(), axis.name);
  return along;
}

std::uint32_t ranks_of_a_line(const Mesh& mesh, const std::vector<std::string>& along) {
  std::uint32_t length = 1;
  for (const std::string& name : along) length *= mesh.axis(name).size;
  return length;
}

TEST_CASE(
    "Lines along the inner axis are consecutive ranks, and along the outer one those at one place of each") {
  const std::vector<std::string> inner{"gpu"};
  const std::vector<std::string> outer{"node"};
  CHECK(grid().lines(inner) == Lines{ranks({0, 1}), ranks({2, 3}), ranks({4, 5})});
  CHECK(grid().lines(outer) == Lines{ranks({0, 2, 4}), ranks({1, 3, 5})});
}

TEST_CASE("Along all axes there is one line of all ranks, and along none each rank is alone") {
  const std::vector<std::string> both{"node", "gpu"};
  CHECK(grid().lines(both) == Lines{ranks({0, 1, 2, 3, 4, 5})});
  CHECK(grid().lines({}).size() == 6);
  CHECK(Mesh({}).lines({}) == Lines{ranks({0})});
}

TEST_CASE("A stride is the product of the sizes inside") {
  check_for_all(200, "strides", [] {
    std::uint32_t product = 1;
    const Mesh mesh = random_mesh();
    for (const MeshAxis& axis : mesh.axes()) {
      RC_ASSERT(axis.stride == product);
      product *= axis.size;
    }
    RC_ASSERT(mesh.ranks() == product);
  });
}

TEST_CASE("A rank and its coordinates are inverse, and a stride leads to the neighbour") {
  check_for_all(200, "coordinates", [] {
    const Mesh mesh = random_mesh();
    const Rank rank{*rc::gen::inRange(0u, mesh.ranks())};
    const std::vector<std::uint32_t> at = mesh.coordinates(rank);
    RC_ASSERT(mesh.rank_at(at) == rank);
    for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
      const MeshAxis& axis = mesh.axes()[i];
      RC_ASSERT(at[i] < axis.size);
      if (at[i] + 1 == axis.size)
        continue;
      std::vector<std::uint32_t> beside = at;
      ++beside[i];
      RC_ASSERT(mesh.rank_at(beside) == Rank{rank.index + axis.stride});
    }
  });
}

TEST_CASE("Every rank is in exactly one line of any axes, all lines are equally long, and its ranks ascend") {
  check_for_all(200, "partition", [] {
    const Mesh mesh = random_mesh();
    const std::vector<std::string> along = random_axes(mesh);
    std::vector<int> times(mesh.ranks());
    for (const std::vector<Rank>& line : mesh.lines(along)) {
      RC_ASSERT(line.size() == ranks_of_a_line(mesh, along));
      RC_ASSERT(std::is_sorted(line.begin(), line.end()));
      for (const Rank rank : line) ++times[rank.index];
    }
    RC_ASSERT(times == std::vector<int>(mesh.ranks(), 1));
  });
}

TEST_CASE("The ranks of a line differ along its axes alone") {
  check_for_all(200, "lines", [] {
    const Mesh mesh = random_mesh();
    const std::vector<std::string> along = random_axes(mesh);
    for (const std::vector<Rank>& line : mesh.lines(along))
      for (const MeshAxis& axis : mesh.axes()) {
        std::set<std::uint32_t> places;
        for (const Rank rank : line) places.insert(mesh.coordinate(rank, axis));
        const bool runs_along = std::find(along.begin(), along.end(), axis.name) != along.end();
        RC_ASSERT(places.size() == (runs_along ? axis.size : 1));
      }
  });
}

// From rank to rank along one axis after another.
TEST_CASE("Lines of all axes together reach every rank from any") {
  check_for_all(100, "reach", [] {
    const Mesh mesh = random_mesh();
    std::set<std::uint32_t> reached{*rc::gen::inRange(0u, mesh.ranks())};
    for (const MeshAxis& axis : mesh.axes()) {
      const std::vector<std::string> along{axis.name};
      const std::set<std::uint32_t> from = reached;
      for (const std::vector<Rank>& line : mesh.lines(along))
        if (std::any_of(line.begin(), line.end(), [&](Rank rank) { return from.contains(rank.index); }))
          for (const Rank rank : line) reached.insert(rank.index);
    }
    RC_ASSERT(reached.size() == mesh.ranks());
  });
}

TEST_CASE("Axes have places and names of their own") {
  CHECK_THROWS_AS(Mesh({{"a", 0}}), InternalError);
  CHECK_THROWS_AS(Mesh({{"a", 2}, {"a", 3}}), InternalError);
  CHECK_THROWS_AS(grid().axis("stage"), InternalError);
}

}  // namespace lockstep::mesh_test
