#pragma once

// The machine of the stand-in: GPUs in host memory, and the ranks that use them.
//
// Problem:   CUDA, NCCL and the ranks' meetings are global to a process, and their order is nobody's to
//            choose.
// Idea:      one object holds the state of all; while `run` lasts it is the one that the entry points
//            (cuda_runtime_calls.cpp, nccl_calls.cpp, the fake libraries') find. One rank runs at a time
//            (turns.h); between calls GPUs go on in a random order, or by a virtual clock.
// Invariant: what is found wrong ends the run: every call fails from then on, so that all ranks come to their
//            ends. A seed decides everything but what threads that are no ranks do.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "validate/harness/stand_in/collectives.h"
#include "validate/harness/stand_in/device_memory.h"
#include "validate/harness/stand_in/failing_calls.h"
#include "validate/harness/stand_in/meeting.h"
#include "validate/harness/stand_in/mutant.h"
#include "validate/harness/stand_in/random_order.h"
#include "validate/harness/stand_in/streams.h"
#include "validate/harness/stand_in/turns.h"
#include "validate/harness/stand_in/verdict.h"
#include "validate/harness/stand_in/virtual_clock.h"

namespace lockstep::harness::stand_in {

// A rank's thread as the GPUs see it.
struct Host {
  int rank = 0;
  std::uint32_t line = 0;
  VectorClock clock = {};
  double seconds = 0;  // on the virtual clock
  std::string waits_for = {};
};

struct MachineOptions {
  int ranks = 1;
  int gpus = 1;
  std::uint64_t seed = 0;
  std::int64_t bytes_of_gpu = std::int64_t{16} << 30;
  std::optional<ClockRates> clock = {};  // without it, a random order
  bool computes = true;                  // false: only times are of interest
  FailingCall failing = {};
  Mutant mutant = {};
};

// How a rank ended: with 0, or with the exit code and lines of its exception (failure.h).
struct RankEnd {
  int exit_code = 0;
  std::vector<std::string> lines = {};
};

class Machine {
 public:
  explicit Machine(MachineOptions options);

  // Each rank in a thread of its own, until all have ended.
  std::vector<RankEnd> run(const std::function<void(int rank)>& function);

  // What was wrong, in the order in which it was found.
  const std::vector<std::string>& findings() const { return verdict_.findings(); }
  // What was made and not ended, by kind; empty where nothing leaked.
  std::map<std::string, std::int64_t> leaks() const;
  const CallCounts::Counts& calls() const { return counts_.all(); }
  const std::set<CallSite>& sites() const { return counts_.sites(); }

  // What follows is for entry points (call.h). Where none runs, calls reach a machine of one rank.
  static Machine& current();
  const MachineOptions& options() const { return options_; }
  Turns& turns() { return turns_; }
  Streams& streams() { return streams_; }
  DeviceMemory& memory() { return memory_; }
  Collectives& collectives() { return collectives_; }
  Meeting& meeting() { return meeting_; }
  CallCounts& counts() { return counts_; }
  VirtualClock* clock() { return clock_ ? &*clock_ : nullptr; }

  void report(const std::string& finding) { verdict_.report(finding); }
  // A rank has failed or found something: nobody waits any more.
  void break_off(const std::string& why) { verdict_.break_off(why); }
  bool is_broken() const { return verdict_.is_broken(); }
  const std::string& why_broken() const { return verdict_.why_broken(); }
  void count_live(const std::string& kind, int change) { live_[kind] += change; }

 private:
  int choose(const std::vector<int>& ready);
  bool move_world(const std::vector<int>& ready);
  double earliest(const std::vector<int>& ready) const;
  void hang();
  void begin_rank(int rank);
  RankEnd run_rank(int rank, const std::function<void(int rank)>& function);

  static Machine* current_;

  MachineOptions options_;
  std::uint32_t lines_ = 0;
  std::vector<Host> hosts_;
  DeviceMemory memory_;
  Collectives collectives_;
  Streams streams_;
  RandomOrder order_;
  std::optional<VirtualClock> clock_;
  Meeting meeting_;
  CallCounts counts_;
  std::map<std::string, std::int64_t> live_;
  Verdict verdict_;
  Turns turns_;
};

}  // namespace lockstep::harness::stand_in
