#pragma once

// What of a plan is communication, and among whom, as traces tell it.
//
// Problem:   a collective is hundreds of ops of a plan, and one node of each member in traces; a node names its group by
//            number.
// Idea:      the ops between the first member's taking of its lane and the last one's giving it back are the collective's.
//            Groups are numbered from 1 in the order of their sets; the world has no number.
// Cost:      a flag an op; a number a rank and set.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/collectives/known_choices.h"
#include "sim/plan/plan.h"
#include "sim/run/simulate.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// The groups of a cluster by number, and what the library would choose in them.
class ExportedGroups {
 public:
  ExportedGroups(const Scenario& scenario, const Cluster& cluster);

  // The lanes of a set's collectives are numbered after it; a pipeline has one more, for what goes back.
  std::uint32_t set_of(const Lane& lane) const;
  std::string name_of(std::uint32_t set, std::uint32_t rank) const;
  // Another algorithm than the library would choose.
  bool is_insisted_on(const Communication& communication, std::uint32_t set);
  // Of each group: its ranks.
  std::string json() const;

 private:
  const CommunicationSpec& wanted_;
  const Cluster& cluster_;
  std::vector<std::vector<std::uint32_t>> number_of_;  // by set and rank
  KnownChoices choices_;
};

// Which ops of an iteration are whose.
class CommunicationMarks {
 public:
  CommunicationMarks(const Plan& plan, const IterationOps& iteration);

  bool is_inside(OpId op) const { return is_inside_[op.index - first_]; }
  // Null: it begins none.
  const Communication* begun_by(OpId op) const;
  std::uint32_t receiver(OpId begin) const { return receivers_.at(begin.index); }
  // Besides what collectives do there.
  std::uint32_t ops_on(LaneId lane) const { return ops_on_lane_[lane.index]; }

 private:
  void mark(const Communication& communication);

  std::uint32_t first_;
  std::vector<bool> is_inside_;  // from the iteration's first op on
  std::map<std::uint32_t, const Communication*> begun_by_;
  std::map<std::uint32_t, std::uint32_t> receivers_;  // of messages, by the op that begins one
  std::vector<std::uint32_t> ops_on_lane_;
};

}  // namespace lockstep
