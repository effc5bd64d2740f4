#pragma once

// Ranks that run collectives together, as a strategy is told them.
//
// Problem:   a strategy that asks for "the world" can stand on nothing but plain data parallelism.
// Idea:      it is told a group to synchronise: the communicator that a line of the mesh forms, and the lane
//            of each representative that its collectives run on. All lines run the same, side by side, each
//            in its own ranks. Within its group a strategy may ask for others by name (shards, replicas).
// Invariant: all lines of a group have equally many members; a group of its own has lanes of its own.
// Cost:      a number for each rank and set.
// Reference: torch.distributed.ProcessGroup.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/plan/cohort.h"
#include "sim/plan/group.h"

namespace lockstep {

// The lanes of each representative, in the writer's order. A communicator runs its collectives in the order
// in which they are issued, beside those of the others.
struct RankLanes {
  std::vector<LaneId> compute;
  std::vector<LaneId> communication;
  std::vector<std::vector<LaneId>> of_groups = {};  // communication, by group set
  std::vector<LaneId> issue = {};                   // where the GPU may wait for its host
};

struct ProcessGroup {
  std::string name;
  const Communicator* communicator = nullptr;  // of one of its lines
  std::span<const LaneId> lanes = {};          // by representative
  std::vector<WrittenGroup> lines = {};  // that are written; none: all ranks are one, in their own order

  std::uint32_t members() const { return communicator->ranks(); }
};

// First all ranks, then every set's.
std::vector<ProcessGroup> process_groups(const Communicator& all, std::span<const GroupSet> sets,
                                         const Roles& roles, const RankLanes& lanes);

// What `cohort` alone sees of a set: the lines that its ranks are in. `lanes`: of its representatives. None of a set
// that it shares with others.
std::optional<ProcessGroup> process_group_of(const Cohort& cohort, const GroupSet& set, const Roles& roles,
                                             std::span<const LaneId> lanes);

}  // namespace lockstep
