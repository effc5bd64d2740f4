#pragma once

// Steps of a program as a plan.
//
// Idea:      the nodes of the representatives in the order in which they can be written; a collective is written by its
//            algorithm, as the library chooses here, a message as a pipeline's is.
// Invariant: a program written by export gives the ops of the plan it was made of, in their order on every lane.
//            Where steps do not overlap, a rank's first nodes wait for the end of its step before.

#include <map>
#include <span>
#include <vector>

#include "sim/collectives/known_choices.h"
#include "sim/training/program_order.h"
#include "sim/training/strategy.h"

namespace lockstep {

class ProgramWriter {
 public:
  // All must outlive it. `groups`: all ranks, then those of each set.
  ProgramWriter(PlanWriter& writer, const Job& job, std::span<const ProcessGroup> groups,
                const RankLanes& lanes, KnownChoices& choices);

  // The warm-up is iteration 0: what comes before the program's first step.
  void write(std::int64_t iteration, IterationOps& ops);

 private:
  inline static const std::string automatic = "auto";

  // Who meets, and where its members' places are: of all ranks their own.
  struct Venue {
    const Communicator& world;
    const WrittenGroup* line = nullptr;

    Rank place_of(Rank rank) const;
  };

  const ProgramStep& step_of(std::uint32_t actor) const;
  const ProgramNode& node_at(const ProgramPlace& place) const;
  void find_crew();
  void begin_step();
  void end_step();
  void write_vertex(std::span<const ProgramPlace> members, IterationOps& ops);
  void write_work(const ProgramPlace& place);
  void write_collective(std::span<const ProgramPlace> members, IterationOps& ops);
  void write_message(const ProgramPlace& sender, const ProgramPlace& receiver, IterationOps& ops);
  Communication entry_of(const ProgramNode& node);
  Venue venue_of(const ProgramPlace& place) const;
  const Choice& choose(const ProgramNode& node, const Communicator& world);
  std::vector<ProgramPlace> in_order_of(const Venue& venue, std::span<const ProgramPlace> members) const;
  template <class Write>
  auto within(const Venue& venue, const Write& write) {
    if (venue.line == nullptr)
      return write();
    const GroupScope scope(writer_, *venue.line);
    return write();
  }
  std::vector<OpId> waits_of(const ProgramPlace& place);
  // The one op after which all that the node waits for has ended.
  OpId ready_of(const ProgramPlace& place);
  OpId ready_of_both(const ProgramPlace& sender, const ProgramPlace& receiver);
  LaneId lane_of(const ProgramPlace& place);
  void name(const ProgramNode& node);
  void settle(const ProgramPlace& place, OpId op) { ops_[place.actor][place.node] = op; }
  const std::string& text(std::uint32_t index) const { return program_.texts[index]; }

  PlanWriter& writer_;
  const Job& job_;
  const Program& program_;
  std::span<const ProcessGroup> groups_;
  const RankLanes& lanes_;
  KnownChoices& choices_;
  ProgramCrew crew_;
  std::vector<ProgramOrder> orders_;                        // by step
  std::vector<std::uint32_t> actor_of_;                     // by rank
  std::vector<std::map<std::uint32_t, LaneId>> own_lanes_;  // by actor and lane of the program
  std::size_t step_ = 0;
  std::vector<std::vector<OpId>> ops_;     // by actor and node: its end, in this step
  std::vector<std::vector<OpId>> before_;  // and in the step before
  std::vector<OpId> begins_;               // of the step, by actor, where steps do not overlap
};

}  // namespace lockstep
