#pragma once

// What the leader of a strategy does and holds beside what the others do and hold.
//
// Idea:      where rank 0 leads (nn.DataParallel), it is the one that runs out of memory and the one all wait
//            for: its compute time and its memory stand beside those of the other ranks.
// Cost:      linear in the ops of the measured iterations, for each rank; leaders drive one machine.

#include <optional>

#include "sim/run/simulate.h"

namespace lockstep {

struct Imbalance {
  Duration busy, others_busy;   // of the compute lane in a mean iteration; the others' is their mean
  Bytes memory, others_memory;  // at most; the others' is that of the one with most
};

// Nothing where nobody leads, or nobody follows.
std::optional<Imbalance> find_imbalance(const Scenario& scenario, const Simulation& simulation);

}  // namespace lockstep
