#pragma once

// Rings whose messages meet nobody.
//
// Problem:   a ring of a thousand ranks is two million messages, and where none of them ever shares a link each would
//            be an event that tells nobody anything.
// Idea:      a relay that runs between two joins of a lane with one slot is over before the lane's next join is: links
//            that relays cross in such turns, and nobody else, are never shared. A ring all of whose relays go over
//            such links is known as soon as its last relay has started: each message takes what the first does, and
//            starts when the one before it has left and the feeder's has arrived. All are laid out at once, and of
//            each relay only that it leaves its lane and that it arrives are events.
// Invariant: every message starts and ends when it would as an event of its own. Nothing has left or arrived before
//            all have started: a relay has as many messages as its ring has relays, or more.
// Cost:      a pass over the ops, and over what their routes use; a few nanoseconds a message.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/units.h"
#include "sim/network/route_table.h"
#include "sim/plan/plan.h"
#include "sim/plan/timeline.h"

namespace lockstep {

class QuietRings {
 public:
  // A relay while its ring is laid out, and then as it ends.
  struct Laid {
    std::uint32_t relay;
    Duration moving;
    Duration latency;
    Time left;
    Time arrived;
  };

  // Both must outlive it. Relays are numbered as in the plan.
  QuietRings(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes);

  bool holds(std::uint32_t relay) const { return !ring_of_.empty() && ring_of_[relay] != no_ring; }

  // `relay` starts. True when it is the last of its ring.
  bool start(std::uint32_t relay, Time now);
  // Of the ring of `relay`, whose last has started: gives `timeline` its messages. The span, in the order in which
  // they feed one another, is valid until the next call.
  std::span<const Laid> lay_out(std::uint32_t relay, Timeline& timeline);

 private:
  static constexpr std::uint32_t no_ring = 0xffffffff;

  struct Ring {
    std::vector<Laid> relays;  // each feeds the next, and the last the first
    std::size_t started = 0;
  };

  const Plan& plan_;
  std::vector<std::uint32_t>
      ring_of_;  // by relay; empty where the order of what happens at one instant may matter
  std::vector<std::uint32_t> place_of_;  // by relay: in its ring
  std::vector<Ring> rings_;
};

}  // namespace lockstep
