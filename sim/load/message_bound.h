#pragma once

// What collectives and messages of a scenario take at most.
//
// Problem:   the time of a scenario must be bounded before its cluster is built.
// Idea:      every step of the costliest protocol over everything that a hop may cross, and every byte by the
//            slowest link, shared with all that a node may send at once.
// Invariant: nothing that is simulated of the scenario's messages takes longer.
// Cost:      a walk over the machine's links, once for all of a scenario's messages.

#include "sim/scenario/scenario.h"

namespace lockstep {

struct Messages {
  double collectives = 0;
  double between_pairs = 0;
  double bytes = 0;  // over one GPU's links
  double ranks = 1;  // of the largest group
};

// What the scenario's cluster makes of any of them.
class MessageBound {
 public:
  explicit MessageBound(const Scenario& scenario);
  double seconds_of(const Messages& messages) const;

 private:
  double start_;          // of a collective or message, beside its steps,
  double start_of_rank_;  // and for each rank of it
  double step_;           // of a ring, of which a collective has two for each rank
  double byte_;
};

// The least that a flow gets of the slowest link, in bytes/s.
double smallest_share(const Scenario& scenario);

}  // namespace lockstep
