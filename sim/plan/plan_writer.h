#pragma once

// How writers append to a plan.
//
// Problem:   every strategy and collective needs the same bookkeeping: lanes in order, dependencies, names.
// Idea:      each call appends one op and returns its id. An op follows the one written before it on its
//            lane; further dependencies are given by id. `finish` turns them into flat successor lists.
//            What a plan may take is the writer's room: who asks for more than that gets PlanTooLarge.
// Invariant: writers are called for representatives only; `representative(rank)` says whose ops stand for
//            another rank's, so a writer that asks for its neighbour's op never knows about folding.
// Cost:      amortised O(1) an op and a dependency; 8 bytes a dependency until `finish`.

#include <initializer_list>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/plan/cohort.h"
#include "sim/plan/group.h"
#include "sim/plan/name_table.h"
#include "sim/plan/numbering.h"
#include "sim/plan/plan.h"
#include "sim/plan/plan_size.h"
#include "sim/plan/roles.h"
#include "sim/plan/traffic_library.h"

namespace lockstep {

// A message from one rank to another; `protocol` and `algorithm` say what a step of it costs.
struct Hop {
  Rank source{};
  Rank destination{};
  std::uint32_t channel = 0;
  std::uint32_t exit = own_channel;
  std::uint8_t protocol = 0;
  std::uint8_t algorithm = no_algorithm;
  Bytes message = {};  // where its length matters to who carries it
  Duration late = {};  // what its sender takes beside the wire
};

struct KernelHash {
  std::size_t operator()(const KernelWork& work) const;
};

struct PathHash {
  std::size_t operator()(const Path& path) const;
};

class PlanWriter {
 public:
  static constexpr std::int64_t any_room = std::numeric_limits<std::int64_t>::max();

  // `room`: bytes that the plan may take (plan_size.h).
  // `library`: of the cluster; none: every traffic is made.
  explicit PlanWriter(const Roles& roles, std::int64_t room = any_room, TrafficLibrary* library = nullptr)
      : roles_(roles), room_(room), library_(library) {}

  // The ranks a writer writes for, one per role.
  std::span<const Rank> representatives() const {
    if (group_ != nullptr)
      return group_->places;
    return cohort_ != nullptr ? cohort_->representatives : roles_.representatives;
  }
  // Where in `representatives()` the one that stands for `rank` is.
  std::size_t representative_index(Rank rank) const {
    if (group_ != nullptr)
      return group_->index_of[rank.index];
    const std::uint32_t role = roles_.role_of[rank.index];
    return cohort_ != nullptr ? cohort_->place_of[role] : role;
  }

  LaneId lane(const Lane& lane);
  // A lane of the rank's own for one collective's transfers on one channel.
  LaneId new_channel_lane(Rank rank, std::uint32_t channel = 0);

  // Paths are made at first use and shared by every op that asks for the same.
  PathId kernel_path(Rank rank);
  PathId held_path(Rank rank, const HeldByCollective& held);
  PathId hop_path(const Hop& hop);
  PathId coupled_path(const Path& path);
  // Made at the first call with this key; `key` names the algorithm and all that its traffic depends on.
  template <class Make>
  TrafficId traffic(const std::string& key, Make make) {
    const std::string own_key = group_ != nullptr ? key + " of " + group_->name : key;
    const auto found = traffics_.find(own_key);
    if (found != traffics_.end())
      return found->second;
    if (const Traffic* known = library_ != nullptr ? library_->find(own_key) : nullptr)
      return append_traffic(*known);
    return add_traffic(own_key, make());
  }

  // Before making so many flows, which may be more than memory holds; throws PlanTooLarge.
  void expect_flows(std::int64_t flows) const;

  // What follows is charged to `category` and shown under `name`.
  void section(std::string_view name, Category category) { section("", name, category); }
  // Under "VERBNAME", which nobody needs to put together where it is known.
  void section(std::string_view verb, std::string_view name, Category category);
  // The same words, which stand as long as the plan does.
  Text text(std::string_view words);

  // Dependencies may name `no_op`, which is no dependency.
  OpId delay(LaneId lane, Duration duration, std::span<const OpId> after = {});
  OpId kernel(LaneId lane, const KernelWork& work, std::span<const OpId> after = {});
  OpId transfer(LaneId lane, PathId path, Bytes bytes, std::span<const OpId> after = {});
  // So many transfers of `bytes`, each after one of the relay that is to feed it: `feed` it before `finish`.
  OpId relay(LaneId lane, PathId path, Bytes bytes, std::int64_t messages, std::span<const OpId> after = {});
  void feed(OpId relay, OpId feeder);
  OpId join(LaneId lane, std::span<const OpId> after = {});
  // A join that takes (+1) or returns (-1) a slot of its lane and what `path` reserves.
  OpId take(LaneId lane, PathId path, std::span<const OpId> after = {});
  OpId give_back(LaneId lane, PathId path, std::span<const OpId> after = {});
  void depend(OpId op, OpId on);
  // On a lane that runs when ready: the lower, the sooner.
  void prioritise(OpId op, std::uint32_t priority);

  // So many times as much as stands here is to come.
  void expect_more(std::int64_t times);

  std::size_t size() const { return plan_.size(); }
  PlanSize counted() const;
  Plan finish() &&;

 private:
  friend class CohortScope;
  friend class GroupScope;

  // The rank that a lane or a kernel of `rank` belongs to.
  Rank stand_in(Rank rank) const;
  PathId find_path(const Path& path);
  TrafficId add_traffic(const std::string& key, Traffic traffic);
  TrafficId append_traffic(Traffic traffic);
  OpId append(OpKind kind, LaneId lane, std::int64_t amount, PathId path, std::span<const OpId> after);
  void follow_lane(LaneId lane, OpId op);
  bool keeps_lane_order(LaneId lane, OpKind kind, std::int64_t amount) const;
  void check_relays() const;
  void place_messages();
  void take_room(std::int64_t bytes) {
    room_ -= bytes;
    if (room_ < 0)
      throw_too_large(0);
  }
  [[noreturn]] void throw_too_large(std::int64_t expected_flows) const;

  const Roles& roles_;
  std::int64_t room_;  // left, in bytes
  TrafficLibrary* library_;
  std::int64_t flows_ = 0;
  const Cohort* cohort_ = nullptr;       // entered: all that is written is of its ranks
  const WrittenGroup* group_ = nullptr;  // entered
  Plan plan_;
  std::vector<std::pair<OpId, OpId>> edges_;  // (on, op)
  std::vector<OpId> last_in_lane_;
  Numbering<PathId, Path, std::unordered_map<Path, PathId, PathHash>> paths_;
  Numbering<KernelId, KernelWork, std::unordered_map<KernelWork, KernelId, KernelHash>> kernels_;
  std::map<std::string, TrafficId> traffics_;
  NameTable name_table_;
  NameTable text_table_;
};

// Until it ends, `writer` writes for the ranks of `cohort` alone; null: for all.
class CohortScope {
 public:
  CohortScope(PlanWriter& writer, const Cohort* cohort) : writer_(writer) { writer_.cohort_ = cohort; }
  ~CohortScope() { writer_.cohort_ = nullptr; }
  CohortScope(const CohortScope&) = delete;
  CohortScope& operator=(const CohortScope&) = delete;

 private:
  PlanWriter& writer_;
};

// Until it ends, the ranks that `writer` is told are places in `group`.
class GroupScope {
 public:
  GroupScope(PlanWriter& writer, const WrittenGroup& group);
  ~GroupScope() { writer_.group_ = nullptr; }
  GroupScope(const GroupScope&) = delete;
  GroupScope& operator=(const GroupScope&) = delete;

 private:
  PlanWriter& writer_;
};

// One dependency or a few, without naming a container.
struct After {
  After(std::initializer_list<OpId> ops) : ids(ops) {}
  operator std::span<const OpId>() const { return ids; }
  std::vector<OpId> ids;
};

}  // namespace lockstep
