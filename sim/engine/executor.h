#pragma once

// The machine that moves time: runs a plan and gives every op its start and end.
//
// Problem:   ops wait for one another, for their lane and for the network.
// Idea:      an op starts when its dependencies have ended and its lane lets it. One-slot lanes are
//            compiled to a link from op to op, so they cost nothing extra; other lanes count slots, and
//            those that run what is ready keep a heap of what waits.
//            Starts and ends are events; the network is solved once at the end of each instant. Of a row of kernels
//            (network/kernel_rows.h) only the first start and the last end are.
// Invariant: at one instant events run in the order they were scheduled; a plan that cannot finish
//            (a dependency cycle) is a bug of its writer and is reported as one.
// Cost:      two queue events an op or message of a relay (three for a transfer with latency); no allocation
//            once warm.

#include <span>

#include "sim/base/units.h"
#include "sim/network/route_table.h"
#include "sim/plan/plan.h"
#include "sim/plan/timeline.h"

namespace lockstep {

// `capacities` by LinkId; route i of `routes` belongs to path i of `plan`.
Timeline run(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes);

}  // namespace lockstep
