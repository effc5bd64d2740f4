#pragma once

// In which order the nodes of a program's step can be written, and which of several ranks run as one.
//
// Problem:   a collective can be written once every member's part of it is ready, and a plan names no op that is not
//            there yet; a trace may also ask for what can never happen.
// Idea:      Kahn's topological order over the nodes of all actors, in which a collective or a message is one vertex
//            that its members meet in. Of what is ready the node that stands first in its program comes first.
// Invariant: the order depends on the program alone. What is stuck waits for itself, or for a partner that never comes.
// Cost:      linear in nodes and dependencies, with a heap.
// Reference: Kahn 1962, "Topological sorting of large networks".

#include <cstdint>
#include <span>
#include <vector>

#include "sim/training/program.h"

namespace lockstep {

// A node of one of the ranks that are walked.
struct ProgramPlace {
  std::uint32_t actor = 0;
  std::uint32_t node = 0;
  bool operator==(const ProgramPlace&) const = default;
};

// The ranks that are walked, and who of them meets in the groups of each set.
struct ProgramCrew {
  struct Meeting {
    std::vector<std::uint32_t> line_of;  // by actor
    std::vector<std::uint32_t> members;  // by line: how many actors
  };
  std::vector<Rank> actors;
  std::vector<Meeting> sets;
};

// Everybody.
ProgramCrew whole_crew(const Program& program);

struct ProgramOrder {
  std::vector<ProgramPlace> places;
  std::vector<std::uint32_t> begin;  // of each vertex, and one more: its members stand together, by actor
  std::vector<ProgramPlace> stuck;   // of each actor the first that could not be written

  std::size_t vertices() const { return begin.size() - 1; }
  std::span<const ProgramPlace> members(std::size_t vertex) const {
    return std::span(places).subspan(begin[vertex], begin[vertex + 1] - begin[vertex]);
  }
};

ProgramOrder order_of(const Program& program, std::size_t step, const ProgramCrew& crew);

}  // namespace lockstep
