#pragma once

// What is held only for a while: activations, gathered weights, messages on their way.
//
// Problem:   the most that a GPU holds at once is less than the sum of all that it ever holds.
// Idea:      a strategy says at which op so many bytes more or fewer are held; when that was is known after
//            the run (report/memory_track).
// Invariant: what an iteration allocates it releases. Changes at one instant happen in the order they were
//            written, which is the order in which the host asks its allocator.
// Cost:      a change a layer and pass, in one iteration of a run; none in the others. 24 bytes a change and 4 for
//            each representative between the first and the last that it is of.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/units.h"
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
};

// Those of an iteration, in the order in which they were written.
class MemoryChanges {
 public:
  // `at`: by place in a list that `roles` translates to representatives (empty: they are the same).
  void add(const MemoryChange& change, std::span<const OpId> at, std::span<const std::uint32_t> roles) {
    if (at.empty())
      return;
    const auto role_of = [&](std::size_t place) {
      return roles.empty() ? static_cast<std::uint32_t>(place) : roles[place];
    };
    const std::size_t begin = ops_.size();
    std::uint32_t first = role_of(0);
    std::uint32_t last = first;
    for (std::size_t place = 1; place < at.size(); ++place) {
      first = std::min(first, role_of(place));
      last = std::max(last, role_of(place));
    }
    ops_.resize(begin + last - first + 1, no_op);
    for (std::size_t place = 0; place < at.size(); ++place) ops_[begin + role_of(place) - first] = at[place];
    entries_.push_back({change, first, static_cast<std::uint32_t>(ops_.size())});
  }

  // Calls visit(change, op) for those of a representative.
  template <class Visit>
  void for_each(std::uint32_t representative, const Visit& visit) const {
    std::uint32_t begin = 0;
    for (const Entry& entry : entries_) {
      const std::uint32_t place = begin + representative - entry.first;
      if (representative >= entry.first && place < entry.end && ops_[place] != no_op)
        visit(entry.change, ops_[place]);
      begin = entry.end;
    }
  }

  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    MemoryChange change;
    std::uint32_t first;  // representative
    std::uint32_t end;    // one past its ops
  };

  std::vector<Entry> entries_;
  std::vector<OpId> ops_;  // entry after entry, by representative from its first on
};

}  // namespace lockstep
