#pragma once

// What a simulation takes of memory and time, known before any of it is run.
//
// Problem:   a word more in a scenario (a thousand nodes, every step, nobody folded) can mean a thousand times
//            the work; who waits for an answer that never comes, or meets the end of memory, learns nothing.
// Idea:      plans are written before they are run, and what is written can be counted: every op starts and
//            ends, which makes two events. So the writers themselves say how large a run is, and no second
//            list of strategies can drift from them. A writer stops where its room ends; what stands before
//            any plan, the cluster's links and the flows of its rings, is scaled up from two nodes.
// Invariant: the same scenario is refused on every machine: limits and costs are constants, and nothing reads
//            a clock or how much memory there is. --yes accepts any size.
// Cost:      nothing where clusters are small; else building two nodes of it.
// Reference: constants of `lockstep_benchmark`, see run_size.cpp.

#include <cstdint>
#include <string>

#include "sim/plan/plan_size.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

struct RunSize {
  double nodes = 0;
  double links = 0;
  double ranks = 0;            // that are simulated one by one
  double layers = 0;           // of the model
  double tensors = 0;          // its parameters
  PlanSize plans = {};         // that stand in memory together
  double events = 0;           // of all that the engine runs
  double multiplications = 0;  // of small models that are really trained
  bool is_more = false;        // than this: counting stopped here
  // Whose messages share links, so that each event is about all of them: of algorithms that do not fold, on
  // average over the events.
  std::uint32_t tied_ranks = 0;

  double bytes() const;    // at the highest
  double seconds() const;  // on one core
};

// Of one simulation; a prediction is three of them, one after another.
inline constexpr double most_bytes = 2e9;
inline constexpr double most_seconds = 20;

// Every op starts and ends.
inline constexpr double events_per_op = 2;

// What one plan may take, in bytes as plan_size.h counts them.
std::int64_t room_for_plan(const Scenario& scenario);

// Throws ConfigError when this is too much: how much it is, what makes it so much, and what would be less.
void refuse_if_large(const Scenario& scenario, const RunSize& size);

// "12 s", "1.5 GB": for people, about two digits.
std::string rough_seconds(double seconds);
std::string rough_bytes(double bytes);

}  // namespace lockstep
