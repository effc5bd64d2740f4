#pragma once

// What every rank of a cluster does in a step, stated node by node instead of following from a model and a strategy.
//
// Problem:   another tool's trace, or a plan that was written out, says which kernels, collectives and messages a rank runs
//            and after what; neither layers nor gradients stand behind it.
// Idea:      a program is a list of nodes with dependencies. Ranks that run the same nodes share one program, however
//            many files it was read from. Collectives name the set of groups that they run in, and the group is that of
//            the rank; the k-th collective of each member meets the k-th of all others, as a communicator's calls do.
// Invariant: a program that left `load` ends: no node waits for itself, and what one rank sends another receives.
//            Steps repeat: the first follows the last.
// Cost:      some 200 bytes a node of a program, whatever the number of ranks that run it.
// Reference: MLCommons Chakra, schema/protobuf/et_def.proto.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/plan/group.h"
#include "sim/plan/plan.h"

namespace lockstep {

enum class ProgramNodeKind : std::uint8_t { kernel, delay, join, collective, send, receive };

inline constexpr std::uint32_t own_rank = 0xffffffff;
inline constexpr std::uint32_t no_node = 0xffffffff;
inline constexpr std::uint32_t no_text = 0xffffffff;
inline constexpr std::uint32_t all_ranks = 0xffffffff;  // in the place of a set of groups

// A lane of each rank. A lane of its own is new for every node, and orders none.
struct ProgramLane {
  LaneKind kind = LaneKind::compute;
  std::uint32_t index = 0;
  bool is_own = false;
  bool operator==(const ProgramLane&) const = default;
};

struct ProgramDependency {
  std::uint32_t node = 0;
  std::uint32_t rank = own_rank;  // whose node it is
  bool is_previous = false;       // of the step before; of the first of all steps nobody waits for it
  bool operator==(const ProgramDependency&) const = default;
};

struct ProgramNode {
  ProgramNodeKind kind = ProgramNodeKind::kernel;
  Category category = Category::other;
  std::uint32_t name = 0;  // index into Program::texts
  std::uint32_t lane = 0;  // index into Program::lanes
  KernelWork work = {};    // of a kernel; of a delay its duration
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes = {};                   // of a collective or a message, as nccl-tests counts them
  std::uint32_t set = all_ranks;      // of groups
  std::uint32_t algorithm = no_text;  // that is insisted on; index into Program::texts
  std::uint32_t peer = 0;             // the other rank of a message
  std::uint32_t tag = 0;
  std::uint32_t occurrence =
      0;  // among the rank's collectives of the set, or its messages of this peer and tag
  std::uint32_t behind = no_node;  // written after this one, on a lane that keeps its order
  std::uint32_t first_dependency = 0;
  std::uint32_t dependencies = 0;
  bool operator==(const ProgramNode&) const = default;
};

struct ProgramStep {
  std::vector<ProgramNode> nodes;
  std::vector<ProgramDependency> dependencies;

  std::span<const ProgramDependency> dependencies_of(const ProgramNode& node) const {
    return std::span(dependencies).subspan(node.first_dependency, node.dependencies);
  }
  bool operator==(const ProgramStep&) const = default;
};

struct RankProgram {
  std::vector<ProgramStep> steps;
  bool operator==(const RankProgram&) const = default;
};

struct Program {
  std::vector<std::string> texts;
  std::vector<ProgramLane> lanes;
  std::vector<ListedGroups> sets;
  std::vector<RankProgram> programs;
  std::vector<std::uint32_t> program_of;  // by rank
  std::int64_t steps = 1;
  bool steps_overlap = false;  // else a rank begins a step when all of its step before has ended
  std::string source = {};     // where it was read

  const RankProgram& of(Rank rank) const { return programs[program_of[rank.index]]; }
  // Whether some rank is named by another's nodes: then none stands for another.
  bool names_ranks() const;
};

}  // namespace lockstep
