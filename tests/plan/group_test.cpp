// Which ranks form a group, and what is written while one is entered.

#include "sim/plan/group.h"

#include <doctest/doctest.h>

#include "sim/plan/plan_writer.h"

namespace lockstep::group_test {

std::vector<Rank> ranks(std::initializer_list<std::uint32_t> indices) {
  std::vector<Rank> result;
  for (const std::uint32_t index : indices) result.push_back(Rank{index});
  return result;
}

// Six ranks as three groups of two neighbours.
GroupSet pairs() {
  Communicator pair;
  pair.gpus_per_node = 2;
  pair.rings = {ring_pattern({0, 1}, 5)};
  GroupSet set{.name = "pair", .shapes = {pair}, .groups = {}};
  const std::vector<std::string> along{"place"};
  for (std::vector<Rank>& members : Mesh({{"place", 2}, {"pair", 3}}).lines(along))
    set.groups.push_back({.members = std::move(members), .channels = {3}});
  return set;
}

TEST_CASE("Without folding every group is written and stands for itself") {
  const GroupSet set = pairs();
  const auto written = written_groups(set, unfolded_roles(6));
  REQUIRE(written.size() == 3);
  CHECK(written[2].group->members == ranks({4, 5}));
  CHECK(written[2].places == ranks({0, 1}));
  CHECK(written[2].roles == std::vector<std::uint32_t>{4, 5});
  CHECK(written[2].alike.empty());
}

// Ranks 2 and 3 are of one role, ranks 0, 5 and ranks 1, 4 of two others: pairs 0 and 2 are alike.
TEST_CASE("The first of alike groups is written for each role in it, and stands for the others") {
  const GroupSet set = pairs();
  const auto written = written_groups(set, roles_from_colours({7, 8, 9, 9, 8, 7}));
  REQUIRE(written.size() == 2);
  CHECK(written[0].alike == std::vector<const Group*>{&set.groups[2]});
  CHECK(written[1].places == ranks({0}));
  CHECK(written[1].index_of == std::vector<std::uint32_t>{0, 0});
}

TEST_CASE("In a group a writer's ranks are places, its channels the cluster's") {
  const GroupSet set = pairs();
  const Roles roles = unfolded_roles(6);
  const auto written = written_groups(set, roles);
  PlanWriter writer(roles);
  PathId hop;
  PathId kernel;
  LaneId lane;
  {
    const GroupScope scope(writer, written[1]);
    hop = writer.hop_path({.source = Rank{0}, .destination = Rank{1}, .channel = 0});
    kernel = writer.held_path(Rank{1}, {.channels = 5, .sent = Bandwidth{7}});
    lane = writer.new_channel_lane(Rank{1});
    CHECK(writer.representative_index(Rank{1}) == 1);
  }
  CHECK(writer.representative_index(Rank{4}) == 4);
  const Plan plan = std::move(writer).finish();
  CHECK(plan.paths[hop].rank == Rank{2});
  CHECK(plan.paths[hop].destination == Rank{3});
  CHECK(plan.paths[hop].channel == 3);
  CHECK(plan.paths[kernel].rank == Rank{3});
  CHECK(plan.paths[kernel].held == HeldByCollective{.channels = 5, .sent = Bandwidth{7}});
  CHECK(plan.lanes[lane].rank == Rank{3});
}

TEST_CASE("A group's traffic is that of its members, and beside it stands that of the groups like it") {
  const GroupSet set = pairs();
  const Roles roles = roles_from_colours({0, 1, 0, 1, 0, 1});
  const auto written = written_groups(set, roles);
  PlanWriter writer(roles);
  TrafficId id;
  {
    const GroupScope scope(writer, written[0]);
    id = writer.traffic("ring", [&] { return Traffic{.flows = ring_flows(set.shapes[0]), .rounds = {}}; });
  }
  const TrafficId world = writer.traffic("ring", [&] { return Traffic{}; });
  CHECK(id != world);
  const Plan plan = std::move(writer).finish();
  REQUIRE(plan.traffics[id].flows.size() == 2);
  CHECK(plan.traffics[id].flows[1].destination == Rank{0});
  REQUIRE(plan.traffics[id].alike.size() == 4);
  CHECK(plan.traffics[id].alike[3].source == Rank{5});
}

}  // namespace lockstep::group_test
