#pragma once

// What a simulation takes of memory and time, known before any of it is run.
//
// Problem:   a word more in a scenario (a thousand nodes, every step, nobody folded) can mean a thousand times
//            the work; who waits for an answer that never comes, or meets the end of memory, learns nothing.
// Idea:      plans are written before they are run, and what is written can be counted: every op starts and
//            ends, which makes two events. So the writers themselves say how large a run is, and no second
//            list of strategies can drift from them. A writer stops where its room ends; what stands before
//            any plan, the cluster's links and the flows of its rings, is scaled up from two nodes. Who shares links
//            with whom no plan tells: that is counted while the first of a run is run (size_watch.h).
// Invariant: the same scenario is refused on every machine: limits and costs are constants, and nothing reads
//            a clock or how much memory there is. --yes accepts any size.
// Cost:      nothing where clusters are small; else building two nodes of it.
// Reference: the table of costs in run_size.cpp, and how it was measured.

#include <cstdint>
#include <string>

#include "sim/plan/plan_size.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// Of iterations that are run window by window, or that vary, beyond those that are shown.
struct LongRunSize {
  double window_ops = 0;  // written, and merged
  double accounts = 0;    // each rank's of each iteration
  double draws = 0;       // how much longer a kernel takes than it should
  double merged = 0;      // events that it does without, for kernels in a row are one there
};

struct RunSize {
  double nodes = 0;
  double links = 0;
  double ranks = 0;            // that are simulated one by one
  double layers = 0;           // of the model
  double tensors = 0;          // its parameters
  PlanSize plans = {};         // that stand in memory together
  LongRunSize long_run = {};
  double told = 0;             // ops of one rank in one iteration, which pages and documents list one by one
  double events = 0;           // of all that the engine runs, rehearsals and the ends of a band among it
  double rehearsed = 0;        // events among these
  double shared = 0;           // what sharing links takes of it (timeline.h)
  double multiplications = 0;  // of small models that are really trained
  bool is_more = false;        // than this: counting stopped here
  bool has_seen_sharing = false;  // else `shared` is what is usual

  double bytes() const;    // at the highest
  double seconds() const;  // of a core
};

// Of a prediction, its band included; what comes after it, remedies and a comparison, has as much again.
inline constexpr double most_bytes = 1e9;
inline constexpr double most_seconds = 5;

// Every op starts and ends.
inline constexpr double events_per_op = 2;

// Of so many events before any of them has happened: nobody shares where one rank stands for all, or a collective is
// one transfer; else a few links and flows an event, of which there may be none or four times as many.
double usually_shared(const Scenario& scenario, double ranks, double events);

// At least: that each micro-batch goes forward through each layer once. Known before anything is written.
RunSize least_size(const Scenario& scenario);

// What one plan may take, in bytes as plan_size.h counts them, beside those that stand already.
std::int64_t room_for_plan(const Scenario& scenario, const PlanSize& standing = {});

// Throws ConfigError when this is too much: how much it is, what makes it so much, and what would be less.
void refuse_if_large(const Scenario& scenario, const RunSize& size);
// The same, where its least size is too much already.
void refuse_if_surely_large(const Scenario& scenario);

// "12 s", "1.5 GB": for people, about two digits.
std::string rough_seconds(double seconds);
std::string rough_bytes(double bytes);

}  // namespace lockstep
