#pragma once

// What is held only for a while: activations, gathered weights, messages on their way.
//
// Problem:   the most that a GPU holds at once is less than the sum of all that it ever holds.
// Idea:      a strategy says at which op so many bytes more or fewer are held; when that was is known after
//            the run (report/memory_track).
// Invariant: what an iteration allocates it releases. Changes at one instant happen in the order they were
//            written, which is the order in which the host asks its allocator.
// Cost:      a change a layer and pass, in one iteration of a run; none in the others. 8 bytes for each representative
//            that it is of: few changes differ, and those that do are kept once.

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/plan/numbering.h"
#include "sim/plan/plan.h"

namespace lockstep {

enum class MemoryCategory : std::uint8_t {
  parameters,
  gradients,
  optimizer_states,
  activations,
  communication_buffers,
  workspaces,
  framework
};

enum class OpEdge : std::uint8_t { start, end };

struct MemoryChange {
  MemoryCategory category = MemoryCategory::activations;
  OpEdge edge = OpEdge::start;
  Bytes bytes;  // below zero: released
  bool operator==(const MemoryChange&) const = default;
};

using MemoryChangeId = Id<struct MemoryChangeTag>;

struct MemoryChangeHash {
  std::size_t operator()(const MemoryChange& change) const {
    return std::hash<std::int64_t>{}(change.bytes.count()) * 16 +
           static_cast<std::size_t>(change.category) * 2 + static_cast<std::size_t>(change.edge);
  }
};

// Those of an iteration, in the order in which they were written.
class MemoryChanges {
 public:
  // `at`: by place in a list that `roles` translates to representatives (empty: they are the same).
  void add(const MemoryChange& change, std::span<const OpId> at, std::span<const std::uint32_t> roles) {
    if (at.empty())
      return;
    const MemoryChangeId number = numbering_.number_of(change, all_);
    for (std::size_t place = 0; place < at.size(); ++place) {
      const std::size_t representative = roles.empty() ? place : roles[place];
      if (representative >= of_.size())
        of_.resize(representative + 1);
      if (at[place] != no_op)
        of_[representative].push_back({number, at[place]});
    }
  }

  // Calls visit(change, op) for those of a representative.
  template <class Visit>
  void for_each(std::uint32_t representative, const Visit& visit) const {
    if (representative < of_.size())
      for (const Entry& entry : of_[representative]) visit(all_[entry.change], entry.op);
  }

  bool empty() const { return of_.empty(); }

 private:
  struct Entry {
    MemoryChangeId change;
    OpId op;
  };

  IdVector<MemoryChangeId, MemoryChange> all_;  // that differ
  Numbering<MemoryChangeId, MemoryChange, std::unordered_map<MemoryChange, MemoryChangeId, MemoryChangeHash>>
      numbering_;
  std::vector<std::vector<Entry>> of_;  // by representative
};

}  // namespace lockstep
