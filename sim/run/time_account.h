#pragma once

// Where the time of each rank goes, iteration by iteration.
//
// Problem:   a report wants to know of every rank how long it computed, waited for bytes, and waited for ranks
//            that were not there yet, also for runs too long to keep.
// Idea:      one pass over the ops of an iteration follows all compute lanes at once. What a lane runs is
//            charged to its category. While it stands still, the part before the last member of a collective
//            has begun it is waiting for stragglers, unless another stage ends the wait; the rest is exposed
//            communication, or what the join that ends the wait names.
// Invariant: what an iteration adds to a rank's account is the time from the end of the iteration before to
//            its own end, to the picosecond.
// Cost:      linear in the ops of the iteration.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/plan/timeline.h"
#include "sim/training/strategy.h"

namespace lockstep {

inline constexpr std::size_t category_count = static_cast<std::size_t>(Category::other) + 1;

struct TimeAccount {
  std::array<Duration, category_count> by_category{};  // waiting for bytes stands under `communication`
  Duration straggler_wait;                             // for ranks that come late to a collective
  Duration communicating;                              // a collective was active
  Duration overlapped;                                 // and the compute lane busy

  Duration& of(Category category) { return by_category[static_cast<std::size_t>(category)]; }
  Duration of(Category category) const { return by_category[static_cast<std::size_t>(category)]; }
  Duration total() const;
  TimeAccount& operator+=(const TimeAccount& other);
};

// A part of the time of an op that several kernels were merged into.
struct Charge {
  Category category = Category::other;
  std::int64_t until = 0;  // work units up to the end of this part
};

// By op: what it is charged to, where that is not its section's category alone.
struct Charges {
  std::vector<std::uint32_t> begin;  // ops + 1 offsets into parts, or empty: nothing was merged
  std::vector<Charge> parts;

  std::span<const Charge> of(OpId op) const {
    if (begin.empty())
      return {};
    return std::span(parts).subspan(begin[op.index], begin[op.index + 1] - begin[op.index]);
  }
};

// A stretch of a compute lane's time and what it is charged to: what `op` ran, or what was waited for until it
// could start.
struct TimeSpan {
  std::size_t representative = 0;
  Time from, to;
  OpId op;
  Category category = Category::other;
  bool waits_for_stragglers = false;
};

class TimeKeeper {
 public:
  // All must outlive the keeper; `charges` may be null.
  TimeKeeper(const Plan& plan, const RankLanes& lanes, const Charges* charges = nullptr);

  // The accounts of the iteration `ops`, by representative. `ends`, likewise: where the iteration before
  // ended, and afterwards where this one did. What is charged is also appended to `spans`, in order of each
  // representative's time; null: nobody asks.
  std::vector<TimeAccount> account(const Timeline& timeline, const IterationOps& ops, std::vector<Time>& ends,
                                   std::vector<TimeSpan>* spans = nullptr);

 private:
  // A rank in a collective: until `all_there` it may have to wait for others.
  struct Presence {
    Time begin, all_there, end;
    bool is_received = false;  // a message from another stage
  };

  // A compute lane that stands still until `until` starts.
  struct Idle {
    std::size_t representative;
    Time from, to;
    OpId until;
  };

  void list_presences(const Timeline& timeline, const IterationOps& ops);
  void charge_idle(const Idle& idle, TimeAccount& account);
  void charge_straggler(const Idle& idle, Time from, Time to, TimeAccount& account);
  void charge_wait(const Idle& idle, Time from, Time to, TimeAccount& account);
  void charge_bubble(const Idle& idle, Time from, Time to, TimeAccount& account);
  void charge_to(Category category, const Idle& idle, Time from, Time to, TimeAccount& account);
  void record(const TimeSpan& span);
  void charge_communication(std::size_t representative, Time end, TimeAccount& account) const;
  void charge_busy(OpId op, Duration time, TimeAccount& account) const;
  Category waits_for(OpId op) const;

  const Plan& plan_;
  const RankLanes& lanes_;
  const Charges* charges_;
  std::vector<std::uint32_t> representative_of_;  // by lane
  std::vector<Category> category_of_;             // by op
  std::vector<std::vector<Presence>> presences_;  // by representative, by begin
  std::vector<std::size_t> next_presence_;        // the first that a wait to come may overlap
  std::vector<TimeSpan>* spans_ = nullptr;        // of the iteration at hand
};

}  // namespace lockstep
