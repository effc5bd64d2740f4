#pragma once

// Computing and something else at once, each timed alone and beside the other.
//
// Problem:   a GPU's host queues work ahead. What is queued before the computing may be over before it, what
//            the host starts in between may come too late, and a host that is busy starting one thing starves
//            the other; each of them looks like interference, or hides it.
// Idea:      the other thing (all-reduces, copies) is cut into operations. Some of them are kept started and
//            not ended: at every layer of the computing the host asks, without waiting, which have ended and
//            starts as many. Computing is timed from its own first mark to its own last, on the device. By the
//            operations' own times they must have run throughout, as densely as they do alone, and the host
//            must have been ahead of the device; else it is tried again with more, and at last said to have
//            failed.
// Invariant: all ranks start equally many operations and decide alike. What failed has no times.
// Cost:      5 runs, each 1 s of computing alone, 1 s of operations alone, and both together.

#include <cstdint>
#include <string>
#include <vector>

#include "validate/harness/measure/measurement.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness {

// Operations of one kind that run in order in a queue of their own, beside the computing.
class Traffic {
 public:
  virtual ~Traffic() = default;
  virtual std::int64_t marks_of_one() const { return 0; }  // that it takes from the device
  virtual void reserve(std::int64_t count) = 0;            // before so many are started
  virtual void start_one() = 0;
  // `index` counts what was started since `forget`.
  virtual bool has_ended(std::int64_t index) = 0;
  virtual CollectiveTimes times_of(std::int64_t index, Mark since) = 0;  // waits for it
  virtual void forget() = 0;
};

// Keeps some of them going while something else is asked of the device layer by layer.
class KeptAhead {
 public:
  struct Limits {
    std::int64_t ahead = 50;  // started and not ended
    std::int64_t most = 1;    // started in all
  };
  KeptAhead(Traffic& traffic, const Limits& limits) : traffic_(traffic), limits_(limits) {}

  void top_up();
  // Starts the rest and waits for all; when each ran, in seconds after `since`.
  std::vector<CollectiveTimes> finish(Mark since);

 private:
  Traffic& traffic_;
  Limits limits_;
  std::int64_t started_ = 0;
  std::int64_t ended_ = 0;  // all before it have
};

// Part of [from, until] in which at least one of them ran.
double covered_share(std::vector<CollectiveTimes> spans, double from, double until);

struct BesideTimes {
  double compute_alone = 0;  // seconds of one forward and backward
  double compute_beside = 0;
  double operation_alone = 0;  // seconds of one, back to back
  double operation_beside = 0;
  double operations = 0;  // ended during one compute_beside
  double covered = 0;     // share of the computing in which an operation ran
};

struct BesideResult {
  BesideTimes times;   // medians over runs, then over ranks
  std::string failed;  // why there are none; empty where there are
};

BesideResult measure_beside(Bench& bench, Trainer& trainer, Traffic& traffic);

}  // namespace lockstep::harness
