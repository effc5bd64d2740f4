#pragma once

// Who is slower than the profiles say, and by how much.
//
// Idea:      what a scenario states of single ranks, of shares of them and of NICs, written out by rank and by
//            NIC; what varies from one iteration to the next is a Jitter.
// Invariant: keyed by the seed, and nothing else.

#include <cstdint>
#include <vector>

#include "sim/engine/jitter.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// How much slower than the others each rank is.
std::vector<Ratio> slowdown_by_rank(const Scenario& scenario);
// By node and NIC; empty where all are as they should be. Of several statements about one the last holds.
std::vector<Ratio> slowdown_by_nic(const Scenario& scenario);
// How the speed of ranks varies from one iteration to the next.
Jitter jitter_of(const Scenario& scenario);

}  // namespace lockstep
