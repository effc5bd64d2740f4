#include "sim/plan/plan_writer.h"

#include <doctest/doctest.h>

#include <vector>

namespace lockstep::plan_writer_test {

std::vector<OpId> successors_of(const Plan& plan, OpId op) {
  return {plan.successors.begin() + plan.successor_begin[op.index],
          plan.successors.begin() + plan.successor_begin[op.index + 1]};
}

class Writing {
 public:
  Writing() : roles_(unfolded_roles(2)), writer_(roles_) { writer_.section("first", Category::other); }
  PlanWriter* operator->() { return &writer_; }
  LaneId lane(std::uint32_t slots = 1) {
    return writer_.lane({.rank = Rank{0}, .kind = LaneKind::compute, .index = 0, .slots = slots});
  }
  Plan finish() { return std::move(writer_).finish(); }

 private:
  Roles roles_;
  PlanWriter writer_;
};

TEST_CASE("Ops are numbered in the order they are written") {
  Writing writing;
  const LaneId lane = writing.lane();
  CHECK(writing->delay(lane, Duration::nanoseconds(1)) == OpId{0});
  CHECK(writing->join(lane) == OpId{1});
  CHECK(writing->size() == 2);
}

TEST_CASE("Successor lists hold every dependency, in the order they were stated") {
  Writing writing;
  const OpId a = writing->delay(writing.lane(), Duration::zero());
  const OpId b = writing->delay(writing.lane(), Duration::zero());
  const OpId c = writing->join(writing.lane(), After{a, b});
  const OpId d = writing->join(writing.lane(), After{a});
  const Plan plan = writing.finish();
  CHECK(successors_of(plan, a) == std::vector<OpId>{c, d});
  CHECK(successors_of(plan, b) == std::vector<OpId>{c});
  CHECK(successors_of(plan, c).empty());
  CHECK(successors_of(plan, d).empty());
  CHECK(plan.dependency_count == std::vector<std::uint32_t>{0, 0, 2, 1});
  CHECK(plan.successor_begin.size() == plan.size() + 1);
  CHECK(plan.successor_begin.back() == plan.successors.size());
}

TEST_CASE("Lane order counts as a dependency but costs no successor") {
  Writing writing;
  const LaneId lane = writing.lane();
  const OpId first = writing->delay(lane, Duration::zero());
  const OpId second = writing->delay(lane, Duration::zero());
  const Plan plan = writing.finish();
  CHECK(plan.next_in_lane[first.index] == second);
  CHECK(plan.next_in_lane[second.index] == no_op);
  CHECK(plan.dependency_count[second.index] == 1);
  CHECK(plan.successors.empty());
}

TEST_CASE("In a pool of slots only the takes are ordered") {
  Writing writing;
  const LaneId pool = writing.lane(2);
  const OpId first = writing->take(pool, no_path);
  const OpId back = writing->give_back(pool, no_path, After{first});
  const OpId second = writing->take(pool, no_path);
  const Plan plan = writing.finish();
  CHECK(plan.next_in_lane[first.index] == second);
  CHECK(plan.next_in_lane[back.index] == no_op);
  CHECK(plan.dependency_count[back.index] == 1);
}

TEST_CASE("Depending on no op is no dependency") {
  Writing writing;
  const OpId op = writing->join(writing.lane(), After{no_op});
  writing->depend(op, no_op);
  CHECK(writing.finish().dependency_count[op.index] == 0);
}

TEST_CASE("Equal paths are one path") {
  Writing writing;
  CHECK(writing->hop_path({.source = Rank{0}, .destination = Rank{1}, .channel = 0, .protocol = 0}) == writing->hop_path({.source = Rank{0}, .destination = Rank{1}, .channel = 0, .protocol = 0}));
  CHECK(writing->hop_path({.source = Rank{0}, .destination = Rank{1}, .channel = 0, .protocol = 0}) != writing->hop_path({.source = Rank{1}, .destination = Rank{0}, .channel = 0, .protocol = 0}));
  CHECK(writing->hop_path({.source = Rank{0}, .destination = Rank{1}, .channel = 0, .protocol = 0}) != writing->hop_path({.source = Rank{0}, .destination = Rank{1}, .channel = 1, .protocol = 0}));
  CHECK(writing->hop_path({.source = Rank{0}, .destination = Rank{1}, .channel = 0, .protocol = 0}) != writing->hop_path({.source = Rank{0}, .destination = Rank{1}, .channel = 0, .protocol = 1}));
  CHECK(writing->kernel_path(Rank{1}) == writing->kernel_path(Rank{1}));
  const Path whole{.kind = PathKind::coupled, .shape = {.bytes_per_hop = 10}};
  CHECK(writing->coupled_path(whole) == writing->coupled_path(whole));
  const Path larger{.kind = PathKind::coupled, .shape = {.bytes_per_hop = 11}};
  CHECK(writing->coupled_path(whole) != writing->coupled_path(larger));
}

TEST_CASE("An op belongs to the section that was open when it was written") {
  Writing writing;
  const LaneId lane = writing.lane();
  const OpId before = writing->join(lane);
  writing->section("second", Category::backward);
  const OpId within = writing->join(lane);
  const OpId last = writing->join(lane);
  const Plan plan = writing.finish();
  CHECK(plan.names[section_of(plan, before).name] == "first");
  CHECK(plan.names[section_of(plan, within).name] == "second");
  CHECK(section_of(plan, last).category == Category::backward);
}

TEST_CASE("A section without ops hides nothing") {
  Writing writing;
  const LaneId lane = writing.lane();
  writing->section("empty", Category::forward);
  writing->section("full", Category::backward);
  const OpId op = writing->join(lane);
  const Plan plan = writing.finish();
  CHECK(plan.names[section_of(plan, op).name] == "full");
}

TEST_CASE("A name is stored once however often its section comes back") {
  Writing writing;
  for (int repeat = 0; repeat < 3; ++repeat) {
    writing->section("bucket 0", Category::communication);
    writing->section("forward", Category::forward);
  }
  CHECK(writing.finish().names == std::vector<std::string>{"first", "bucket 0", "forward"});
}

TEST_CASE("Kernels keep their work beside the op that runs it") {
  Writing writing;
  const LaneId lane = writing.lane();
  writing->join(lane);
  const KernelWork work{.work_class = WorkClass::matmul, .flops = 12, .bytes = 34, .launches = 2};
  const OpId op = writing->kernel(lane, work);
  const Plan plan = writing.finish();
  REQUIRE(plan.kernel_of.size() == 1);
  CHECK(plan.kernel_of[0].first == op);
  CHECK(plan.kernels[plan.kernel_of[0].second] == work);
  CHECK(plan.paths[plan.path[op.index]].kind == PathKind::kernel);
}

TEST_CASE("A representative is found for every rank") {
  const Roles roles = roles_from_colours({0, 1, 0, 1});
  const PlanWriter writer(roles);
  REQUIRE(writer.representatives().size() == 2);
  CHECK(writer.representatives()[writer.representative_index(Rank{3})] == Rank{1});
  CHECK(writer.representatives()[writer.representative_index(Rank{2})] == Rank{0});
}

}  // namespace lockstep::plan_writer_test
