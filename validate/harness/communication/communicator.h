#pragma once

// Ranks that reduce gradients together.
//
// Problem:   DDP asks one thing of its communication library: start this reduction now, go on computing, and
//            tell when it is done.
// Idea:      a collective is started after the work asked of the device so far and runs beside what is asked
//            later (NCCL: on a stream of its own; Gloo: on one of two worker threads, as PyTorch has it). A
//            Ticket stands for it; `wait` makes the device's later work wait for it, as c10d's Work::wait
//            does.
// Invariant: all ranks start the same collectives in the same order. Sums are in place.
// Errors:    EnvironmentError; a rank that is lost ends all others (rendezvous.h).

#include <cstdint>
#include <memory>
#include <string>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

struct Ticket {
  std::uint32_t index = 0;
};

// When a collective began and ended, in seconds after a mark; both 0 where the library cannot tell.
struct CollectiveTimes {
  double start = 0;
  double end = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string library() const = 0;  // "Gloo 0.5.0", "NCCL 2.28.9", "none"

  virtual Ticket start_all_reduce(Tensor values) = 0;
  // The same without waiting for the computing asked for so far: traffic beside it, in memory of its own.
  virtual Ticket start_all_reduce_beside(Tensor values) { return start_all_reduce(values); }
  virtual Ticket start_broadcast(Tensor values, int root) = 0;
  virtual void wait(Ticket ticket) = 0;
  virtual bool has_ended(Ticket ticket) = 0;  // asks, never waits
  // Makes room for so many tickets, so that none has to be made while something is timed.
  virtual void reserve_tickets(std::int64_t /*count*/) {}
  // All tickets have been waited for: their indices may be used again.
  virtual void forget_tickets() = 0;
  // After `wait`; waits until the collective has ended.
  virtual CollectiveTimes times_of(Ticket ticket, Mark since) = 0;
};

}  // namespace lockstep::harness
