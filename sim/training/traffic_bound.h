#pragma once

// What an iteration sends at most, before anything is built.
//
// Problem:   a scenario that would overflow the clock must be refused before its plan exists (load/limits.h).
// Idea:      each strategy bounds what it sends from a few sizes. Floating point will do: bounds accept or
//            refuse, nothing simulated comes from them.
// Invariant: no iteration of the strategy's plan has more collectives, or moves more bytes.

#include "sim/training/options.h"

namespace lockstep {

struct TrafficBound {
  double collectives = 0;
  double messages = 0;  // from one rank to another, by rank
  double volume = 2;    // over one GPU's or server's links, in models of 8 bytes an element
};

struct TrafficInput {
  const TrainingSpec& training;
  double ranks = 1;
  double tensors = 0;
  double elements = 0;  // of all tensors
  double layers = 0;    // or tensors, where layers are not known

  double micro_batches() const { return static_cast<double>(training.gradient_accumulation); }
};

// Tensors in groups of at most `elements`; a tensor is never cut.
double most_groups(const TrafficInput& input, double elements);

// What is gathered at once where weights are partitioned is never less than a layer.
double most_units(const TrafficInput& input);

}  // namespace lockstep
