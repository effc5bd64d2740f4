#pragma once

// One call of an entry point, from its first line to its last.
//
// Idea:      it takes the machine, lets other ranks and the GPUs go on first, and knows who calls from where.
// Invariant: while it lives nothing else of the machine moves, but within `wait_until`. A thread that is no
//            rank (NCCL's watcher) takes no turn and may not queue work.

#include <vector>

#include "validate/harness/stand_in/machine.h"

namespace lockstep::harness::stand_in {

// The current GPU of this thread, and its last error.
struct ThreadState {
  Host* host = nullptr;  // null: no rank
  int gpu = 0;
  cudaError_t last_error = cudaSuccess;
  // What copies into the host's memory and has not been waited for.
  cudaStream_t downloading = nullptr;
};
ThreadState& this_thread();

class Call {
 public:
  // `site` is __builtin_return_address(0) of the entry point, or null where no mutant applies.
  explicit Call(const char* entry_point, const void* site = nullptr, double host_seconds = 0);

  Machine& machine() { return machine_; }
  Host& host();
  int gpu() const { return this_thread().gpu; }
  const char* name() const { return entry_point_; }

  // Counted; whether a test wants it to fail.
  bool must_fail();
  // Whether a mutant takes its effect away.
  bool is_dropped() const;
  // Of the caller's argument: the legacy stream for null, another one under a mutant.
  cudaStream_t stream(cudaStream_t argument);

  template <class Condition>
  void wait_until(Condition condition) {
    wait([this, condition] { return machine_.is_broken() || condition(); });
  }
  void wait_for(cudaStream_t stream);
  // From here on the host has seen it.
  void see(const VectorClock& clock) { host().clock.join(clock); }
  VectorClock issue();  // what work asked for now has seen
  double not_before() const;
  // Queues it, waiting for room first where the clock says so.
  void enqueue(cudaStream_t stream, Item item);

  // Success, or what is wrong since the machine broke.
  cudaError_t result() const { return machine_.is_broken() ? cudaErrorLaunchFailure : cudaSuccess; }

 private:
  std::vector<Place> places_of(int gpu, const std::vector<Memory>& memories);
  void wait(const Turns::Condition& condition);
  void check_downloads();

  Machine& machine_;
  const char* entry_point_;
  CallSite site_;
  Turns::Lock lock_;
};

}  // namespace lockstep::harness::stand_in
