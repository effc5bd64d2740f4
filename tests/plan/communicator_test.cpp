#include "sim/plan/communicator.h"

#include <doctest/doctest.h>

#include <set>

namespace lockstep::communicator_test {

Communicator three_nodes_of_four() {
  Communicator world;
  world.nodes = 3;
  world.gpus_per_node = 4;
  world.rings = {ring_pattern({2, 0, 3, 1}, 1)};
  return world;
}

TEST_CASE("Positions are the inverse of the order") {
  const RingPattern pattern = ring_pattern({2, 0, 3, 1}, 5);
  for (std::uint32_t place = 0; place < 4; ++place)
    CHECK(pattern.position[pattern.local_order[place]] == place);
  CHECK(pattern.channels == 5);
}

TEST_CASE("A ring visits a node in its order and then goes on to the next node") {
  const Communicator world = three_nodes_of_four();
  CHECK(world.next(0, Rank{2}) == Rank{0});
  CHECK(world.next(0, Rank{0}) == Rank{3});
  CHECK(world.next(0, Rank{1}) == Rank{4 + 2});      // last of node 0 to the first of node 1
  CHECK(world.next(0, Rank{2 * 4 + 1}) == Rank{2});  // last of the last node to the first of all
}

TEST_CASE("Previous undoes next") {
  const Communicator world = three_nodes_of_four();
  for (std::uint32_t rank = 0; rank < world.ranks(); ++rank) {
    CHECK(world.previous(0, world.next(0, Rank{rank})) == Rank{rank});
    CHECK(world.next(0, world.previous(0, Rank{rank})) == Rank{rank});
  }
}

TEST_CASE("A ring comes back after it has met every rank once") {
  const Communicator world = three_nodes_of_four();
  std::set<Rank> met;
  Rank rank{5};
  for (std::uint32_t step = 0; step < world.ranks(); ++step) {
    met.insert(rank);
    rank = world.next(0, rank);
  }
  CHECK(met.size() == world.ranks());
  CHECK(rank == Rank{5});
}

}  // namespace lockstep::communicator_test
