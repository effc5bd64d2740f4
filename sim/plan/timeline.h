#pragma once

// When everything happened: a start and an end for every op of a plan, indexed alike.
//
// Invariant: an op starts no earlier than everything it depends on has ended. A relay starts with its first
//            message and ends when its last has arrived.
// Cost:      16 bytes an op, and a message of a relay.

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/plan/plan.h"

namespace lockstep {

struct Timeline {
  std::vector<Time> start;          // empty where nobody asks (run_to_ends)
  std::vector<Time> end;            // when dependents may go on; a transfer's last byte has arrived
  std::vector<Time> message_start;  // of relays (Relay::place)
  std::vector<Time> message_end;
  std::uint64_t events = 0;  // starts and ends
  std::uint64_t shared = 0;  // links and flows that were weighed against each other, again and again

  Time finish() const;  // the latest end
};

}  // namespace lockstep
