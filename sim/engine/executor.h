#pragma once

// The machine that moves time: runs a plan and gives every op its start and end.
//
// Problem:   ops wait for one another, for their lane and for the network.
// Idea:      an op starts when its dependencies have ended and its lane lets it. One-slot lanes are
//            compiled to a link from op to op, so they cost nothing extra; other lanes count slots, and
//            those that run what is ready keep a heap of what waits.
//            Starts and ends are events; the network is solved once at the end of each instant. Of a row of kernels
//            (network/kernel_rows.h) only the first start and the last end are; of a ring that shares no link
//            (quiet_rings.h) none between its last start and the ends of its relays.
// Invariant: at one instant events run in the order they were scheduled; a plan that cannot finish
//            (a dependency cycle) is a bug of its writer and is reported as one. Where a run is halted to look at
//            changes nothing of it.
// Cost:      two queue events an op or message of a relay (three for a transfer with latency); no allocation
//            once warm.

#include <cstdint>
#include <memory>
#include <span>

#include "sim/base/units.h"
#include "sim/network/route_table.h"
#include "sim/plan/plan.h"
#include "sim/plan/timeline.h"

namespace lockstep {

// How far a run has come.
struct RunProgress {
  std::uint64_t events = 0;
  std::uint64_t shared = 0;   // as in the timeline
  std::uint64_t sent = 0;     // transfers between ranks, and messages of relays, that have ended
  std::uint64_t to_send = 0;  // of the whole plan
};

class Executor;

// A run that can be halted to see how far it has come. The plan, the capacities and the routes must outlive it.
class PlanRun {
 public:
  // `capacities` by LinkId; route i of `routes` belongs to path i of `plan`.
  PlanRun(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes);
  ~PlanRun();

  // Goes on until so many events, and links and flows weighed, have been counted together; false: all has ended.
  bool advance(std::uint64_t until);
  std::uint64_t counted() const;
  // A pass over the plan's ops.
  RunProgress progress() const;
  // Once all has ended.
  Timeline finish();

 private:
  std::unique_ptr<Executor> executor_;
};

// `capacities` by LinkId; route i of `routes` belongs to path i of `plan`.
Timeline run(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes);

// The same, where nobody asks when ops start: ends alone, in the room of a timeline that is no longer needed.
Timeline run_to_ends(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes,
                     Timeline room);

}  // namespace lockstep
