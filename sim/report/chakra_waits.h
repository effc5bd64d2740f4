#pragma once

// What the nodes of traces wait for.
//
// Problem:   a plan's ops wait for each other across ranks and iterations; a node names nodes of its own file.
// Idea:      each op that ends a node has a place: a rank, an iteration, and which node it is there. Waits within a file are
//            data_deps; those for other ranks, and for the repetition before, pairs of a rank and which node it is in
//            that rank's iteration.
// Invariant: a node waits for what is written before it, in its own iteration or the one before; all else is refused. What
//            the first iteration waits for of the warm-up is where that stands in the last one.
// Cost:      linear in the waits.

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/load/import/chakra_file.h"
#include "sim/report/chakra_plan.h"
#include "sim/run/simulate.h"

namespace lockstep {

// Where an op stands in the files.
struct NodePlace {
  static constexpr std::uint32_t nobody = 0xffffffff;

  std::uint32_t rank = nobody;
  std::uint32_t step = 0;
  std::uint32_t in_step = 0;
  std::uint32_t id = 0;
};

// By op: what it waits for.
class PlanGraph {
 public:
  explicit PlanGraph(const Plan& plan);

  std::span<const OpId> before(OpId op) const {
    return std::span(before_).subspan(begin_[op.index], begin_[op.index + 1] - begin_[op.index]);
  }

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<OpId> before_;
};

class ChakraWaits {
 public:
  ChakraWaits(const ExportedPlan& plan, const Run& run);

  // The node that `end` ends; who receives a message has another than who sends it.
  void put(OpId end, const NodePlace& place) { places_[end.index] = place; }
  void put_received(OpId end, const NodePlace& place) { received_[end.index] = place; }
  // The waits of the node at `place`, which `begin` begins.
  void add_to(ChakraNode& node, const NodePlace& place, OpId begin);

  // Once all are put, by rank and id of a node: what it waits for of the repetition before.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> previous() const;

 private:
  struct WaitForPrevious {
    std::uint32_t rank;
    std::uint32_t id;
    OpId op;
  };

  NodePlace seen_by(std::uint32_t rank, OpId op) const;
  bool is_before_all(OpId op) const { return op < run_.iterations[1].first; }
  OpId in_last_iteration(OpId op) const;
  NodePlace waited_for(const NodePlace& place, OpId op) const;

  const ExportedPlan& plan_;
  const Run& run_;
  PlanGraph graph_;
  std::vector<NodePlace> places_;                // by op that ends a node
  std::map<std::uint32_t, NodePlace> received_;  // by the op that ends a message
  std::vector<WaitForPrevious> for_previous_;
};

}  // namespace lockstep
